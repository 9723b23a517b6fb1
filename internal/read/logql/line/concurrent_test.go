package line_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
)

// TestConcurrent: one pipeline serves many goroutines, each with its own filter and runner.
func TestConcurrent(t *testing.T) {
	p := compile(t, `{a="b"} |~ "(?i)level.*status=[0-9]+" | logfmt | label_format x="{{.status}}/{{__line__ | len}}" | line_format "{{.level | upper}} {{regexReplaceAll \"o+\" .msg \"0\"}} {{.x}}" | decolorize`)
	rows := page("x", []string{logfmtLine, "other"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			f, r := p.Filter(), p.Runner()
			r.SetStream(model.LabelsOf("a", "b"))
			for range 50 {
				var out line.Result
				if got := f.Select(nil, rows, 0, 2); len(got) != 1 || got[0] != 0 {
					t.Errorf("%v", got)
				}
				keep, err := r.Process(1, rows.Line(0), nil, &out)
				if want := []byte(`INFO a "qu0ted" w0rd 200/108`); err != nil || !keep || !bytes.Equal(out.Line, want) {
					t.Errorf("%q %v %v", out.Line, keep, err)
				}
			}
		})
	}
	wg.Wait()
}
