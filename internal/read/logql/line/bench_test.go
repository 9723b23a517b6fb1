package line_test

import (
	"fmt"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
)

// BenchmarkSelect filters pages of 256 KiB of lines.
func BenchmarkSelect(b *testing.B) {
	var lines []string
	size := 0
	for i := 0; size < 256<<10; i++ {
		l := fmt.Sprintf("%s request=%d", logfmtLine, i*7919)
		lines, size = append(lines, l), size+len(l)
	}
	rows := page("", lines)
	for _, query := range []string{
		`|= "nowhere"`, `|= "request=7919"`, `|= "level"`, `!= "nowhere"`, `!= "level"`, `|= "nowhere" or "nothing"`, `|~ "(?i)NOWHERE"`, `|~ "(?i)error|failed"`,
		`|~ "nowhere.*found"`, `|~ "request=[0-9]+9$"`, `|~ "status=[45]\\d\\d"`, `|~ "[45]\\d\\d"`, `|> "<_>status=500<_>"`, `|= ip("10.0.0.0/8")`,
	} {
		f := compile(b, `{a="b"} `+query).Filter()
		var dst []int32
		b.Run(query, func(b *testing.B) {
			b.SetBytes(int64(size))
			for range b.N {
				dst = f.Select(dst[:0], rows, 0, rows.Len())
			}
		})
	}
}

// BenchmarkProcess runs stages on one line.
func BenchmarkProcess(b *testing.B) {
	for _, c := range []struct{ query, line string }{
		{`| json`, jsonLine}, {`| json | level="error"`, jsonLine}, {`| json | status>=500`, jsonLine}, {`| json x="nested.b.c"`, jsonLine},
		{`| logfmt`, logfmtLine}, {`| logfmt | dur>1s`, logfmtLine}, {`| pattern "level=<l> ts=<t> <_> status=<s> <_>"`, logfmtLine},
		{`| regexp "level=(?P<l>\\w+).*status=(?P<s>\\d+)"`, logfmtLine}, {`| logfmt | line_format "{{.level}} {{.msg}}"`, logfmtLine}, {``, logfmtLine},
	} {
		r := compile(b, `{app="web"} `+c.query).Runner()
		r.SetStream(model.LabelsOf("app", "web", "env", "prod"))
		metadata := model.LabelsOf("trace_id", "abc")
		l := []byte(c.line)
		b.Run(c.query, func(b *testing.B) {
			b.SetBytes(int64(len(l)))
			b.ReportAllocs()
			var out line.Result
			for range b.N {
				if _, err := r.Process(1, l, metadata, &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
