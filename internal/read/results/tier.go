package results

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Limits are the settings of the tier. The tags make the fields settings: see package config.
type Limits struct {
	// Split is how long an extent is, if that is at least four steps.
	Split time.Duration `name:"cache.result-split" type:"time" default:"15m" placeholder:"TIME" min:"1m" max:"1d" help:"Time range of one kept result, if it is at least four steps of the query. A sliding dashboard recomputes the steps of the last one or two results; shorter results need more memory."`
	// ClosedAfter is how old all rows must be that a kept value depends on.
	ClosedAfter time.Duration `name:"cache.result-closed-after" type:"time" default:"2m" placeholder:"TIME" min:"1s" max:"1d" help:"Age of samples and lines from which results of queries over them are kept. Later rows are not missed: the results that depend on them are computed again."`
	// TenantPercent is the part of the memory that one tenant may take.
	TenantPercent int `name:"cache.result-tenant-percent" type:"count" default:"50" placeholder:"N" min:"1" max:"100" help:"Most memory that the results of one tenant may take, in percent of the memory for results."`
	// MaxBytes bounds the values and what it costs to keep them. 0 or less: there is no tier.
	MaxBytes int64 `kong:"-"`
}

// Options build a Tier.
type Options struct {
	Limits
	// Changes is told of changes of rows.
	Changes *Changes
	// Horizon returns the time before which rows of a tenant and a signal are hidden, and what hides more of
	// some series; nil: nothing is hidden.
	Horizon func(tenant string, s model.Signal) (oldest int64, h *model.Horizon)
	// Further says whether Changes has been told what became of the rows of a range, and up to which time
	// that is known, where others write rows; nil: it always has. It may wait.
	Further func(ctx context.Context, tenants []string, s model.Signal, r model.TimeRange) (until int64, ok bool)
	// Now returns the time in Unix nanoseconds; nil means the machine's clock.
	Now        func() int64
	Registerer prometheus.Registerer
}

// Tier keeps values. It is safe for concurrent use. A nil Tier keeps nothing.
type Tier struct {
	o       Options
	store   store
	metrics *metrics
}

// New returns an empty tier, or nil if it may keep nothing.
func New(o Options) *Tier {
	if o.MaxBytes <= 0 {
		return nil
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.TenantPercent <= 0 {
		o.TenantPercent = 100
	}
	t := &Tier{o: o, store: store{
		most: o.MaxBytes, mostOwned: o.MaxBytes * int64(o.TenantPercent) / 100, entries: map[key]*entry{}, owners: map[string]*owner{},
	}}
	t.metrics = newMetrics(o.Registerer, t)
	return t
}

// Run is one evaluation of a leaf at the steps of a query.
type Run struct {
	// Pieces are all steps, in their order.
	Pieces []Piece

	tier    *Tier
	leaf    *Leaf
	grid    grid
	name    string
	watched watched
	// seen is the number of the last change that the evaluation sees.
	seen  uint64
	query uint64
}

// Piece is some consecutive steps of a run: those of one extent that has a value, or any number that have
// none, so that what they read in common is read once.
type Piece struct {
	From, To int // steps of the run: [From, To)
	// Value is the kept value of an extent, and At the step of the value that From is. Nil: the steps must be
	// evaluated.
	Value any
	At    int

	keep []candidate // the extents of a piece without a value that may be kept
}

// candidate is an extent that may be kept.
type candidate struct {
	extent int64
	hidden int
	at     int // the first step of the extent that the run has
}

// Open begins an evaluation of a leaf. It returns nil if nothing can be kept of it: at one instant, or while
// values of the leaf are too large. query tells queries apart. What a nil Run stands for is evaluated as if
// there were no tier.
func (t *Tier) Open(ctx context.Context, l *Leaf, s Steps, query uint64) *Run {
	if t == nil {
		return nil
	}
	g, ok := gridOf(s, t.o.Split, cmp.Or(l.LeastSteps, leastSteps))
	if !ok {
		return nil
	}
	r := &Run{tier: t, leaf: l, grid: g, name: g.name(l), query: query}
	now := t.o.Now()
	if t.isRefused(r.name, now) {
		return nil
	}
	closed := now - int64(t.o.ClosedAfter)
	r.Pieces = r.cut(s.Count)
	if t.o.Further != nil {
		all := model.TimeRange{Min: g.times(r.extentOf(&r.Pieces[0]), l).Min, Max: closed}
		until, ok := t.o.Further(ctx, l.Tenants, l.Signal, all)
		if !ok {
			return nil
		}
		closed = min(closed, until)
	}
	edge, any := closed, false
	for i := range r.Pieces {
		any = any || g.times(r.extentOf(&r.Pieces[i]), l).Max <= closed
	}
	if !any {
		return nil
	}
	if r.watched = t.o.Changes.watch(l.Tenants, l.Signal, edge); r.watched == nil {
		return nil
	}
	r.seen = t.o.Changes.last.Load()
	horizons := t.horizons(l)
	t.store.mu.Lock()
	for i := range r.Pieces {
		r.look(&r.Pieces[i], closed, horizons)
	}
	t.store.mu.Unlock()
	r.join()
	return r
}

// cut returns the steps of each extent as a piece.
func (r *Run) cut(count int) []Piece {
	pieces := make([]Piece, 0, int64(count)/r.grid.size+2)
	for from := 0; from < count; {
		step := r.grid.first + int64(from)
		end := (floorDiv(step, r.grid.size) + 1) * r.grid.size
		to := int(min(int64(count), end-r.grid.first))
		pieces = append(pieces, Piece{From: from, To: to, At: int(step - (end - r.grid.size))})
		from = to
	}
	return pieces
}

// extentOf returns the extent that a piece begins in.
func (r *Run) extentOf(p *Piece) int64 {
	return floorDiv(r.grid.first+int64(p.From), r.grid.size)
}

// look gives a piece its value, or notes that it may get one. The lock of the store must be held.
func (r *Run) look(p *Piece, closed int64, horizons []int64) {
	extent := r.extentOf(p)
	times := r.grid.times(extent, r.leaf)
	if times.Max > closed {
		return
	}
	t := r.tier
	generation := r.watched.generation(times)
	hidden, certain := hiddenBy(horizons, times)
	if e := t.store.entries[key{r.name, extent}]; e != nil {
		switch {
		case e.seen < generation:
			t.metrics.stale[staleRows].Inc()
			t.store.drop(e)
		case !certain || e.hidden != hidden:
			t.metrics.stale[staleRetention].Inc()
			t.store.drop(e)
		case e.at > p.At: // a later run began in the extent
		default:
			if e.query == r.query {
				t.metrics.ownHits.Inc()
			} else {
				t.metrics.hits.Inc()
			}
			e.used = true
			p.Value, p.At = e.value, p.At-e.at
			return
		}
	}
	t.metrics.misses.Inc()
	// Where the first extent is kept without its first steps, a range that slides finds it.
	if certain && int64(p.At+p.To-p.From) == r.grid.size {
		p.keep = []candidate{{extent, hidden, p.At}}
	}
}

// join makes one piece of those without a value that follow each other.
func (r *Run) join() {
	joined := r.Pieces[:0]
	for _, p := range r.Pieces {
		if n := len(joined); n > 0 && p.Value == nil && joined[n-1].Value == nil {
			joined[n-1].To = p.To
			joined[n-1].keep = append(joined[n-1].keep, p.keep...)
			continue
		}
		joined = append(joined, p)
	}
	r.Pieces = joined
}

// Keep keeps the extents in a piece that was evaluated, unless their rows have changed since the run was
// opened. cut returns the value of some steps of the run and about the memory that it takes. It must not hold
// the memory of other steps.
func (r *Run) Keep(p *Piece, cut func(from, to int) (value any, bytes int64)) {
	if len(p.keep) == 0 {
		return
	}
	t := r.tier
	horizons := t.horizons(r.leaf)
	for _, x := range p.keep {
		times := r.grid.times(x.extent, r.leaf)
		hidden, certain := hiddenBy(horizons, times)
		if !certain || hidden != x.hidden || r.watched.generation(times) > r.seen {
			t.metrics.refused[refusedMoved].Inc()
			continue
		}
		from := int(x.extent*r.grid.size - r.grid.first)
		value, bytes := cut(from+x.at, from+int(r.grid.size))
		e := &entry{key: key{r.name, x.extent}, at: x.at, value: value, bytes: bytes, seen: r.seen, hidden: hidden, query: r.query}
		if !t.store.put(e, tenantsOf(r.leaf)) {
			t.metrics.refused[refusedLarge].Inc()
			r.Refuse()
			return
		}
	}
}

// refusedFor is how long no value of a leaf is kept that was too large, or of a kind that is not kept.
const refusedFor = 10 * time.Minute

// refusedExtent is the extent of the entry that says that a leaf is not kept.
const refusedExtent = -1 << 63

// Refuse says that values of the leaf are not to be kept for some minutes, because they are too large or of a
// kind that cannot be kept.
func (r *Run) Refuse() {
	e := &entry{key: key{r.name, refusedExtent}, value: r.tier.o.Now() + int64(refusedFor)}
	r.tier.store.put(e, tenantsOf(r.leaf))
}

// Refuses reports whether values of a leaf are not kept. If so, they are not for some more minutes: the
// caller keeps the value of what is above the leaf instead.
func (t *Tier) Refuses(l *Leaf, s Steps) bool {
	if t == nil {
		return false
	}
	g, ok := gridOf(s, t.o.Split, cmp.Or(l.LeastSteps, leastSteps))
	if !ok {
		return false
	}
	now := t.o.Now()
	r := &Run{tier: t, leaf: l, name: g.name(l)}
	if !t.isRefused(r.name, now) {
		return false
	}
	r.Refuse()
	return true
}

func (t *Tier) isRefused(name string, now int64) bool {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	e := t.store.entries[key{name, refusedExtent}]
	if e == nil {
		return false
	}
	if until := e.value.(int64); now >= until || now < until-int64(refusedFor) {
		t.store.drop(e)
		return false
	}
	e.used = true
	return true
}

// MaxBytes returns the most memory that the values of a run may take. Beyond it, a language need not make
// values that would not be kept.
func (r *Run) MaxBytes() int64 { return r.tier.store.mostOwned / 4 }

// horizons returns the times before which rows of some series are hidden now, ascending.
func (t *Tier) horizons(l *Leaf) (all []int64) {
	if t.o.Horizon == nil {
		return nil
	}
	for _, tenant := range l.Tenants {
		oldest, h := t.o.Horizon(tenant, l.Signal)
		if h == nil {
			all = append(all, oldest)
			continue
		}
		all = append(all, h.Times...)
	}
	slices.Sort(all)
	return all
}

// hiddenBy returns how many horizons have hidden all rows of a range, and whether each of the others hides
// none. As horizons move together, the number says which they are.
func hiddenBy(horizons []int64, r model.TimeRange) (n int, certain bool) {
	for i, t := range horizons {
		switch {
		case t > r.Max:
			return len(horizons) - i, true
		case t > r.Min:
			return 0, false
		}
	}
	return 0, true
}
