package groups

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/model"
)

const (
	// maxMetrics bounds the metrics that all tenants together are counted by, at some 40 bytes each.
	maxMetrics = 1 << 20
	// recountEvery is how old a count may be when series are refused by it. Series that have become idle since
	// still count.
	recountEvery = time.Minute
	// awaitCount is how long a request waits for a count that takes long. After it, the request is judged by
	// the count of before, or passes if there is none.
	awaitCount = 2 * time.Second
)

// Options build a Table.
type Options struct {
	// Limits returns the limits of a tenant.
	Limits func(tenant string) *Limits
	// Active emits the labels of all active series of a tenant, which are not kept. It fails with an error of
	// class transient while it is not known which series are active.
	Active func(ctx context.Context, tenant string, s model.Signal, emit func(model.Labels)) error
	// Now returns the time in Unix nanoseconds; nil: the system clock.
	Now        func() int64
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Table has the counts of tenants. It is safe for concurrent use.
type Table struct {
	o         Options
	seed      maphash.Seed
	counted   *prometheus.CounterVec
	uncounted prometheus.Gauge

	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup
	turn chan struct{} // one count at a time

	mu      sync.Mutex
	closed  bool
	tenants map[string]*tenant
	metrics int          // of all tenants
	known   atomic.Int64 // the number of tenants
}

// tenant has the counts of a tenant. It is guarded by Table.mu.
type tenant struct {
	used int64 // when it last created series
	now  *counts
	// since has the series created since the running count began; nil: none is running.
	since *counts
	ended chan struct{} // closed when the running count has ended
	at    int64         // when the last count began, whether or not it succeeded
}

// counts are numbers of series.
type counts struct {
	metrics map[uint64]int64 // by the hash of the name
	sets    []int64
	text    string // the label sets that are counted
	// left are metrics that there was no room for.
	left int64
}

// New returns a table. Close stops it.
func New(o Options) *Table {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Table{o: o, seed: maphash.MakeSeed(), tenants: map[string]*tenant{}, turn: make(chan struct{}, 1)}
	t.ctx, t.stop = context.WithCancel(context.Background())
	f := promauto.With(o.Registerer)
	t.counted = f.NewCounterVec(prometheus.CounterOpts{
		Name: "shale_series_groups_counts_total", Help: "Counts of the active series of a tenant by metric and label set, for limits.metric-series and limits.label-set-series, by result."}, []string{"result"})
	t.uncounted = f.NewGauge(prometheus.GaugeOpts{
		Name: "shale_series_groups_uncounted", Help: "New series of the last counted tenant whose metric had no room in the table of metrics, so that limits.metric-series does not hold for it."})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_series_groups_metrics", Help: "Metrics of tenants with limits.metric-series or limits.label-set-series whose active series are counted."}, func() float64 {
		t.mu.Lock()
		defer t.mu.Unlock()
		return float64(t.metrics)
	})
	return t
}

// Close stops a running count and waits for it.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.stop()
	t.done.Wait()
}

// Over calls over with the index of each label set of the batch whose series may not be created, and returns
// the limit that refuses the first of them. It may wait for a count for two seconds.
func (t *Table) Over(ctx context.Context, b *model.Batch, over func(label int)) error {
	l := t.o.Limits(b.Tenant)
	if b.Labels.Len() == 0 || l.none() && t.known.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.tenants[b.Tenant]
	if l.none() {
		t.forgetLocked(b.Tenant) // its new series are not counted from now on
		return nil
	}
	if own == nil {
		own = &tenant{}
		t.tenants[b.Tenant] = own
		t.known.Add(1)
	}
	own.used = t.o.Now()
	if own.now == nil || own.now.text != l.Sets.String() {
		t.countLocked(ctx, b.Tenant, own, l)
	}
	if err := t.check(own, l, b, func(int) {}); err == nil {
		return nil
	}
	t.countLocked(ctx, b.Tenant, own, l) // some may be idle
	return t.check(own, l, b, over)
}

// countLocked waits for a count, and begins one if none is running and the last is old enough.
func (t *Table) countLocked(ctx context.Context, name string, own *tenant, l *Limits) {
	if own.ended == nil {
		now := t.o.Now()
		fresh := own.at != 0 && now >= own.at && now-own.at < int64(recountEvery)
		changed := own.now != nil && own.now.text != l.Sets.String()
		if t.closed || fresh && !changed {
			return
		}
		own.at = now
		own.since, own.ended = newCounts(l), make(chan struct{})
		sets := l.Sets
		t.done.Go(func() { t.count(name, own, &Limits{Metric: l.Metric, Sets: sets}) })
	}
	ended := own.ended
	t.mu.Unlock()
	defer t.mu.Lock()
	patience := time.NewTimer(awaitCount)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
	case <-ctx.Done():
	}
}

func newCounts(l *Limits) *counts {
	return &counts{metrics: map[uint64]int64{}, sets: make([]int64, len(l.Sets.Sets)), text: l.Sets.String()}
}

// count counts the active series of a tenant.
func (t *Table) count(name string, own *tenant, l *Limits) {
	c := newCounts(l)
	var err error
	select {
	case t.turn <- struct{}{}:
		for _, s := range []model.Signal{model.Metrics, model.Logs} {
			if err == nil {
				err = t.o.Active(t.ctx, name, s, func(series model.Labels) { t.add(c, &l.Sets, s, series, 1, maxMetrics) })
			}
		}
		<-t.turn
	case <-t.ctx.Done():
		err = t.ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(own.ended)
	since := own.since
	own.since, own.ended = nil, nil
	if err != nil {
		if errors.Is(err, model.ErrTransient) {
			own.at = 0 // the next request tries again
		} else if t.ctx.Err() == nil {
			t.o.Logger.Error("cannot count the series of a tenant by metrics and label sets: these limits do not hold until it can", "tenant", name, "err", err)
		}
		t.counted.WithLabelValues("failed").Inc()
		return
	}
	for metric, n := range since.metrics {
		if _, ok := c.metrics[metric]; ok || len(c.metrics) < maxMetrics {
			c.metrics[metric] += n
		}
	}
	for i, n := range since.sets {
		c.sets[i] += n
	}
	t.counted.WithLabelValues("done").Inc()
	t.uncounted.Set(float64(c.left))
	if t.tenants[name] == own {
		if own.now != nil {
			t.metrics -= len(own.now.metrics)
		}
		own.now = c
		t.metrics += len(c.metrics)
		t.makeRoomLocked(own)
	}
}

// makeRoomLocked forgets the tenants that have not created series for longest while there are more metrics
// than may be. They are counted when they create series again.
func (t *Table) makeRoomLocked(keep *tenant) {
	for t.metrics > maxMetrics {
		oldest := ""
		for name, own := range t.tenants {
			if own != keep && own.now != nil && (oldest == "" || own.used < t.tenants[oldest].used) {
				oldest = name
			}
		}
		if oldest == "" {
			return
		}
		t.forgetLocked(oldest)
	}
}

// forgetLocked drops the counts of a tenant.
func (t *Table) forgetLocked(name string) {
	own := t.tenants[name]
	if own == nil {
		return
	}
	if own.now != nil {
		t.metrics -= len(own.now.metrics)
	}
	delete(t.tenants, name)
	t.known.Add(-1)
}

// add counts series of some labels.
func (t *Table) add(c *counts, sets *LabelSets, s model.Signal, l model.Labels, n int64, room int) {
	if s == model.Metrics {
		name := maphash.Bytes(t.seed, l.Get(model.NameLabel))
		if _, ok := c.metrics[name]; ok || len(c.metrics) < room {
			c.metrics[name] += n
		} else {
			c.left += n
		}
	}
	for i := range sets.Sets {
		if i < len(c.sets) && sets.Sets[i].matches(l) {
			c.sets[i] += n
		}
	}
}

// Observe counts the series of a durable batch that were new.
func (t *Table) Observe(b *model.Batch) {
	if b.Labels.Len() == 0 {
		return
	}
	l := t.o.Limits(b.Tenant)
	if l.none() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.tenants[b.Tenant]
	if own == nil {
		return // it is counted when it creates series again
	}
	text := l.Sets.String()
	for _, c := range []*counts{own.now, own.since} {
		if c == nil || c.text != text {
			continue
		}
		before, room := len(c.metrics), maxMetrics
		if c == own.now {
			room = before + maxMetrics - t.metrics
		}
		for i := range b.Labels.Len() {
			t.add(c, &l.Sets, b.Signal, b.Labels.At(i), 1, room)
		}
		if c == own.now {
			t.metrics += len(c.metrics) - before
		}
	}
}

// check finds the series of a batch that the limits refuse.
func (t *Table) check(own *tenant, l *Limits, b *model.Batch, over func(label int)) error {
	c := own.now
	if c == nil || c.text != l.Sets.String() {
		return nil
	}
	var first *model.LimitError
	refused := 0
	metrics, sets := map[uint64]int64{}, make([]int64, len(l.Sets.Sets)) // of this batch
	for i := range b.Labels.Len() {
		series := b.Labels.At(i)
		err := t.exceeds(c, l, b, series, metrics, sets)
		if err == nil {
			if l.Metric > 0 && b.Signal == model.Metrics {
				metrics[maphash.Bytes(t.seed, series.Get(model.NameLabel))]++
			}
			for j := range sets {
				if l.Sets.Sets[j].matches(series) {
					sets[j]++
				}
			}
			continue
		}
		if refused++; first == nil {
			first = err
		}
		over(i)
	}
	if first == nil {
		return nil
	}
	first.Text = fmt.Sprintf("refused %d of %d new series: %s", refused, b.Labels.Len(), first.Text)
	return first
}

// exceeds returns the limit that refuses a series on top of those that are counted and those of the batch.
func (t *Table) exceeds(c *counts, l *Limits, b *model.Batch, series model.Labels, metrics map[uint64]int64, sets []int64) *model.LimitError {
	if l.Metric > 0 && b.Signal == model.Metrics {
		name := series.Get(model.NameLabel)
		hash := maphash.Bytes(t.seed, name)
		if n := c.metrics[hash] + metrics[hash]; n >= l.Metric {
			return metricError(name, b.Tenant, c.metrics[hash], l.Metric)
		}
	}
	for i := range l.Sets.Sets {
		s := &l.Sets.Sets[i]
		if n := c.sets[i] + sets[i]; n >= s.Series && s.matches(series) {
			return setError(s, b.Tenant, c.sets[i])
		}
	}
	return nil
}
