package line_test

import (
	"fmt"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
)

const (
	jsonLine   = `{"level":"info","msg":"a \"quoted\" word","status":200,"nested":{"a":1,"b":{"c":"deep","d":[1,2,{"e":3}]}},"dur":"15ms","size":"1.5KB","ok":true}`
	logfmtLine = `level=info ts=2023-11-14T22:13:20Z msg="a \"quoted\" word" status=200 dur=15ms size=1.5KB path=/api/v1/query`
)

// TestAllocations: what parsers and filters do with a line takes no memory, kept or dropped; templates take
// some.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		query, line string
		max         float64
		keep        bool
	}{
		{``, jsonLine, 0, true},
		{`| json`, jsonLine, 0, true},
		{`| json | level="error"`, jsonLine, 0, false},
		{`| json | status>=500`, jsonLine, 0, false},
		{`| json | level="info" | drop msg, ok | keep level, status`, jsonLine, 0, true},
		{`| json x="nested.b.c", y="nested.b.d[1]"`, jsonLine, 0, true},
		{`| logfmt`, logfmtLine, 0, true},
		{`| logfmt --strict | dur>1s`, logfmtLine, 0, false},
		{`| logfmt | size>1KB`, logfmtLine, 0, true},
		{`| logfmt x="msg", y="status"`, logfmtLine, 0, true},
		{`| pattern "level=<l> ts=<t> <_> status=<s> <_>" | s="500"`, logfmtLine, 0, false},
		{`| regexp "level=(?P<l>\\w+).*status=(?P<s>\\d+)"`, logfmtLine, 1, true},
		{`| regexp "nowhere=(?P<l>\\w+)" | l!=""`, logfmtLine, 0, false},
		{`| decolorize | line_format "{{.app}}" |= "nothing"`, logfmtLine, 0, false},
		{`| unpack`, jsonLine, 1, true},
		{`| label_format b=app`, logfmtLine, 0, true},
		{`| logfmt | line_format "{{.level}} {{.msg}}"`, logfmtLine, 20, true},
	} {
		r := compile(t, `{app="web"} `+c.query).Runner()
		r.SetStream(model.LabelsOf("app", "web", "env", "prod"))
		metadata := model.LabelsOf("app", "clash", "trace_id", "abc")
		l := []byte(c.line)
		var out line.Result
		if keep, err := r.Process(1, l, metadata, &out); err != nil || keep != c.keep {
			t.Errorf("%s: %v, %v", c.query, keep, err)
		}
		t.Run(c.query, func(t *testing.T) {
			alloctest.AtMost(t, c.max, 100, func() {
				if _, err := r.Process(1, l, metadata, &out); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestSelectAllocations: filtering a page takes no memory.
func TestSelectAllocations(t *testing.T) {
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("%s n=%d", logfmtLine, i))
	}
	rows := page("", lines)
	for _, query := range []string{
		`|= "n=77"`, `!= "n=77"`, `|= "n=1" or "n=2"`, `|~ "(?i)N=77"`, `|~ "level=info.*n=7"`, `|~ "n=7\\d7$"`, `|> "<_>status=200<_>n=7<_>"`, `|~ "^level" != "n=1"`,
	} {
		f := compile(t, `{a="b"} `+query).Filter()
		var dst []int32
		t.Run(query, func(t *testing.T) {
			if dst = f.Select(dst[:0], rows, 0, rows.Len()); len(dst) == 0 {
				t.Error("nothing is found")
			}
			alloctest.AtMost(t, 0, 10, func() { dst = f.Select(dst[:0], rows, 0, rows.Len()) })
		})
	}
}
