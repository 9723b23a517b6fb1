package promqltest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	upstream "github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"

	shalepromql "github.com/shaledb/shale/internal/read/promql"
)

// Run runs all of upstream's files for each stage of the rows. Nothing is skipped: every stage gets at least
// one query for each eval of the files.
func Run(t *testing.T, open Open) {
	exprs, err := upstream.GetBuiltInExprs()
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range stages() {
		t.Run(st.name, func(t *testing.T) {
			// The limits are those under which upstream runs its own files.
			theirs := upstream.NewTestEngine(t, false, 5*time.Minute, upstream.DefaultMaxSamplesPerQuery)
			engine := &counting{Engine: &shalepromql.Engine{Upstream: theirs, UseStartTimestamps: true, EnableDelayedNameRemoval: true, SubqueryStep: time.Minute}}
			upstream.RunBuiltinTestsWithStorage(t, engine, func(t testing.TB) storage.Storage {
				return NewStorage(open(t), st.move)
			})
			if n := engine.queries.Load(); n < int64(len(exprs)) {
				t.Errorf("%d queries for %d evals", n, len(exprs))
			}
		})
	}
}

// counting counts the queries of an engine.
type counting struct {
	*shalepromql.Engine
	queries atomic.Int64
}

// own unwraps our own queryable, since the engine accepts no other.
func own(q storage.Queryable) storage.Queryable {
	if s, ok := q.(*Storage); ok {
		return s.queryable()
	}
	return q
}

func (c *counting) NewInstantQuery(ctx context.Context, q storage.Queryable, o promql.QueryOpts, s string, at time.Time) (promql.Query, error) {
	c.queries.Add(1)
	return c.Engine.NewInstantQuery(ctx, own(q), o, s, at)
}

func (c *counting) NewRangeQuery(ctx context.Context, q storage.Queryable, o promql.QueryOpts, s string, from, to time.Time, step time.Duration) (promql.Query, error) {
	c.queries.Add(1)
	return c.Engine.NewRangeQuery(ctx, own(q), o, s, from, to, step)
}
