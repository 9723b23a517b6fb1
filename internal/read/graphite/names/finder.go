package names

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/nametree"
)

// Limits bound the names that one request may find. The tags make the fields settings: see package config.
type Limits struct {
	// MaxNames is 200,000 by default.
	MaxNames int `name:"graphite.max-names" type:"count" default:"200000" placeholder:"N" min:"1" help:"Most names that one pattern of a Graphite query may match."`
}

// Source returns the names of the parts that may hold rows of a request: a [read.Querier].
type Source interface {
	Names(ctx context.Context, req *model.Request) (sets []model.NameSet, release func(), err error)
}

// Options build a Finder.
type Options struct {
	From   Source
	Limits Limits
	// Pool is the memory of all queries together, of which making one index takes at most MaxBytes; nil, 0:
	// no bound.
	Pool     *model.QueryPool
	MaxBytes int64
	// Rollups reports whether names count of which only rollups are left; nil: they do not.
	Rollups func() bool

	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Finder finds names. It is safe for concurrent use. One goroutine makes the indexes of the names that are
// asked for, until Close.
type Finder struct {
	o       Options
	metrics *metrics
	warmer  *warmer
}

// New returns a Finder, to be closed.
func New(o Options) *Finder {
	if o.Limits.MaxNames <= 0 {
		o.Limits.MaxNames = 200_000
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Finder{o: o, metrics: newMetrics(o.Registerer)}
	f.warmer = newWarmer(f, func() *model.Quota { return &model.Quota{Pool: o.Pool, MaxBytes: o.MaxBytes} })
	return f
}

// request asks for the names of a query.
func (f *Finder) request(q *Query) *model.Request {
	r := q.request()
	if f.o.Rollups != nil && f.o.Rollups() {
		r.Rollup = &model.RollupRequest{}
	}
	return r
}

// Close ends the making of indexes. Queries must be over.
func (f *Finder) Close() error {
	f.warmer.close()
	return nil
}

// Query asks for names.
type Query struct {
	Tenant string
	// Range leaves out names of parts that have no rows in it.
	Range model.TimeRange
	// LeavesOnly leaves out branches.
	LeavesOnly bool
	Quota      *model.Quota
	Cost       *model.Cost
}

func (q *Query) request() *model.Request {
	r := &model.Request{Tenant: q.Tenant, Signal: model.Metrics, Range: q.Range, LabelsOnly: true, Quota: q.Quota, Cost: q.Cost}
	if r.Quota == nil {
		r.Quota = new(model.Quota)
	}
	if r.Cost == nil {
		r.Cost = new(model.Cost)
	}
	return r
}

// manyNames is the number of names of one part beyond which a query that scans asks for an index.
const manyNames = 20_000

// Find returns the nodes that satisfy a glob, sorted by path, branches before leaves.
func (f *Finder) Find(ctx context.Context, q *Query, pattern string) ([]Match, error) {
	g, err := ParseGlob(pattern)
	if err != nil {
		return nil, err
	}
	r := f.request(q)
	m := &matches{limit: f.o.Limits.MaxNames, quota: r.Quota, leaves: q.LeavesOnly}
	err = f.each(ctx, r, func(s model.NameSet, x *index) (scanned int, err error) {
		m.begin(s.Range())
		if x != nil {
			return 0, x.find(ctx, g, m.add)
		}
		if w := s.Walk(ctx); w != nil {
			return (&scan{g: g, emit: m.add, near: seekCost}).run(ctx, w)
		}
		emit := (&once{seen: make(map[string]struct{}), quota: r.Quota}).emit(m.add)
		return 0, s.Each(ctx, func(name []byte) error { return g.whole(name, emit) })
	})
	if err != nil {
		return nil, err
	}
	return m.finish()
}

// each calls look with each set of names, and its index if there is one. look returns the number of names
// that it has looked at for lack of an index.
func (f *Finder) each(ctx context.Context, r *model.Request, look func(s model.NameSet, x *index) (scanned int, err error)) error {
	sets, release, err := f.o.From.Names(ctx, r)
	if err != nil {
		return err
	}
	defer release()
	many := false
	trees := readTrees(ctx, sets, r.Quota)
	defer trees.close()
	for _, s := range sets {
		t := trees.next()
		if t.err != nil {
			return t.err
		}
		f.metrics.lookups.WithLabelValues(t.way).Inc()
		scanned, err := look(s, t.index)
		if err != nil {
			return err
		}
		many = many || scanned > manyNames
	}
	f.warmer.want(r.Tenant, r.Range.Min, many)
	return nil
}

// build makes the index of a set.
func (f *Finder) build(ctx context.Context, r *model.Request, s model.NameSet) ([]byte, error) {
	b := nametree.NewBuilder(r.Quota.TakeBytes)
	defer b.Release()
	if err := s.Each(ctx, b.Add); err != nil {
		return nil, err
	}
	out, err := b.Finish()
	if err == nil {
		f.metrics.built(b.Count, len(out))
	}
	return out, err
}
