package logql

import (
	"context"
	"fmt"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/readtest"
)

// TestPieces gives queries less and less memory. They have the same result in pieces until even one step
// takes more than there is, and then an error. Nothing but the result stays charged.
func TestPieces(t *testing.T) {
	m := readtest.NewMemory(1)
	for app := range 2 {
		l := model.LabelsOf("app", fmt.Sprint(app))
		var lines []readtest.Line
		for i := range 1200 {
			lines = append(lines, readtest.Line{
				Time: int64(i) * second / 2,
				Text: fmt.Sprintf(`{"ms":%d,"path":"/items/%d","method":"m%d"}`, i*7%100, i*(app+1), i%3),
			})
		}
		m.AddText("a", l.Key(1, model.Logs), l, lines...)
	}
	e := New(Options{Read: read.New(read.Options{Sources: []read.Source{m}})})
	steps := vector.Steps{Start: 10 * second, Step: 10 * second, Count: 60}
	for _, query := range []string{
		`topk(3, sum by (path) (rate({app=~".+"} | json [10s])))`,
		`sum by (method) (count_over_time({app="0"} | json [10s]))`,
		`count(count_over_time({app=~".+"} | json [10s]))`,
		`max(sum by (path) (count_over_time({app="0"} | json [30s])))`,
		`avg_over_time({app="0"} | json | unwrap ms [10s]) by (method)`,
		`sum(sum by (path) (count_over_time({app="0"} | json [10s])) or vector(0))`,
		`sum by (path) (bytes_over_time({app="0"} | json [10s] offset 20s))`,
		`sum by (path) (count_over_time({app="0"} | json [10s])) unless absent_over_time({app="0"} | json | ms > 90 [1s] offset -15s)`,
		`sum by (app, path) (rate({app=~".+"} | json [10s])) / on (app) group_left () sum by (app) (rate({app=~".+"} | json [10s]))`,
		`topk(2, label_replace(sum by (path) (count_over_time({app="0"} | json [10s])), "path", "x", "path", ".*"))`,
	} {
		run := func(limit int64) (*Numbers, string, *model.Quota, error) {
			p, err := Prepare(query)
			if err != nil {
				t.Fatal(err)
			}
			quota := &model.Quota{MaxBytes: limit, Pool: &model.QueryPool{MaxBytes: 1 << 40}}
			n, err := e.Numbers(context.Background(), &MetricQuery{Tenants: []string{"a"}, Prepared: p, Steps: steps, Quota: quota})
			if err != nil {
				return nil, "", quota, err
			}
			return n, numbersTable(n), quota, nil
		}
		whole, want, _, err := run(0)
		if err != nil {
			t.Fatal(err)
		}
		reread, refused := 0, 0
		for limit := int64(1 << 22); limit > 1<<10; limit = limit * 2 / 3 {
			n, got, quota, err := run(limit)
			switch {
			case model.NeedsMoreMemory(err):
				refused++
				continue
			case err != nil:
				t.Fatal(err)
			case got != want:
				t.Fatalf("%s with %d bytes:\n%s\nshould be\n%s", query, limit, got, want)
			case n.Stats.Lines > whole.Stats.Lines:
				reread++
			}
			if most := quota.Charged().Bytes(); most > limit {
				t.Errorf("%s: %d bytes are charged of %d", query, most, limit)
			}
		}
		if refused == 0 || reread == 0 {
			t.Errorf("%s: %d refused, %d in pieces", query, refused, reread)
		}
	}
}
