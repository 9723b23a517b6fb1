package logql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/readtest"
)

func numbersTable(n *Numbers) string {
	var sb strings.Builder
	for _, s := range n.Matrix.Series {
		sb.WriteString(s.Labels.String())
		for i, v := range s.Values {
			if s.Present.Has(i) {
				fmt.Fprintf(&sb, " %d:%v", n.Matrix.Steps.Time(i), v)
			}
		}
		sb.WriteByte('\n')
	}
	for _, w := range n.Warnings {
		fmt.Fprintln(&sb, "warning:", w)
	}
	return sb.String()
}

// second is a unit of time in which ranges of queries can be written.
const second = 1_000_000_000

// factory is a small world of two tenants, with a line each few seconds.
func factory(t *testing.T) *Engine {
	t.Helper()
	m := readtest.NewMemory(1)
	add := func(tenant string, l model.Labels, lines ...readtest.Line) {
		for i := range lines {
			lines[i].Time *= second
		}
		m.AddText(tenant, l.Key(1, model.Logs), l, lines...)
	}
	add("a", model.LabelsOf("app", "web", "zone", "1"),
		readtest.Line{Time: 10, Text: `{"ms":5,"path":"/"}`},
		readtest.Line{Time: 20, Text: `{"ms":7,"path":"/cart"}`},
		readtest.Line{Time: 25, Text: `{"ms":9,"path":"/"}`})
	add("a", model.LabelsOf("app", "web", "zone", "2"),
		readtest.Line{Time: 12, Text: `{"ms":1,"path":"/"}`},
		readtest.Line{Time: 22, Text: `{"ms":"slow","path":"/cart"}`})
	add("a", model.LabelsOf("app", "db"), readtest.Line{Time: 20, Text: "slow query"})
	add("b", model.LabelsOf("app", "web", TenantLabel, "mine"), readtest.Line{Time: 25, Text: "GET /b"})
	return New(Options{Read: read.New(read.Options{Sources: []read.Source{m}})})
}

func TestNumbers(t *testing.T) {
	e := factory(t)
	steps := vector.Steps{Start: 10 * second, Step: 10 * second, Count: 3}
	instant := vector.Steps{Start: 30 * second, Count: 1}
	one := []string{"a"}
	for _, c := range []struct {
		query     string
		tenants   []string
		instant   bool
		maxSeries int
		partial   bool
		kind      ResultKind
		want      string
	}{
		{query: `1 + 1`, tenants: one, instant: true, kind: ResultScalar, want: `
{} 30000000000:2
`},
		{query: `1 + 1`, tenants: one, want: `
{} 10000000000:2 20000000000:2 30000000000:2
`},
		{query: `vector(3)`, tenants: one, instant: true, kind: ResultVector, want: `
{} 30000000000:3
`},
	} {
		p, err := Prepare(c.query)
		if err != nil {
			t.Fatalf("%s: %v", c.query, err)
		}
		q := &MetricQuery{
			Tenants: c.tenants, Prepared: p, Steps: steps, Instant: c.instant, MaxSeries: c.maxSeries, Partial: c.partial,
			Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
		}
		if c.instant {
			q.Steps = instant
		}
		got, err := e.Numbers(context.Background(), q)
		if err != nil {
			t.Errorf("%s: %v", c.query, err)
			continue
		}
		if d := cmp.Diff(c.want, "\n"+numbersTable(got)); d != "" || got.Kind != c.kind {
			t.Errorf("%s: kind %d: %s", c.query, got.Kind, d)
		}
		got.Matrix.Release(q.Quota)
		if q.Quota.Charged() != (&model.Quota{}).Charged() {
			t.Errorf("%s: %+v is still charged", c.query, q.Quota.Charged())
		}
	}
}

func TestNumbersRefused(t *testing.T) {
	e := factory(t)
	for _, c := range []struct {
		query    string
		quota    int64
		class    error
		want     string
		canceled bool
	}{
		{query: `sum(1)`, class: model.ErrInvalid, want: "unexpected expr type (*syntax.LiteralExpr)"},
		{query: `{app="web"}`, class: model.ErrInvalid, want: "log queries are not supported as an instant query type, please change your query to a range query type"},
		{query: `vector(1) + vector(2)`, quota: 300, class: model.ErrLimit, want: "limit exceeded: the query needs more than 300 bytes of memory (query.max-bytes)"},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		if c.canceled {
			cancel()
		}
		p, err := Prepare(c.query)
		if err == nil {
			q := &MetricQuery{Tenants: []string{"a"}, Prepared: p, Steps: vector.Steps{Start: 20 * second, Step: second, Count: 20}, MaxSeries: 2, Quota: &model.Quota{MaxBytes: c.quota}}
			_, err = e.Numbers(ctx, q)
		}
		if !errors.Is(err, c.class) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.query, err)
		}
		cancel()
	}
}
