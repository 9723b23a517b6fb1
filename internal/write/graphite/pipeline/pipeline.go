package pipeline

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/write/graphite/aggregate"
	"github.com/shaledb/shale/internal/write/graphite/rules"
)

// Options build a Pipeline.
type Options struct {
	Rules rules.Settings
	// TableBytes bounds the memory for what is known of paths.
	TableBytes int64
	// Aggregator gets the points of aggregates; nil: there are none.
	Aggregator *aggregate.Aggregator
	// AggregatesOnly means that points themselves are not stored, as FORWARD_ALL = False.
	AggregatesOnly bool
	Registerer     prometheus.Registerer
	Logger         *slog.Logger
}

// Pipeline applies rules to points. It is safe for concurrent use.
type Pipeline struct {
	o     Options
	files *rules.Files
	now   atomic.Pointer[generation]

	stop   context.CancelFunc
	work   sync.WaitGroup
	logged atomic.Int64 // when a failed rule was last logged, in Unix seconds
}

// generation is what is in force between two changes of the files.
type generation struct {
	number uint64 // grows with each change
	rules  *rules.Rules
	known  *table
}

// Open reads the files. An error has the file and the line.
func Open(o Options) (*Pipeline, error) {
	p := &Pipeline{o: o}
	var err error
	if p.files, err = rules.Open(o.Rules, p.take); err != nil {
		return nil, err
	}
	f := promauto.With(o.Registerer)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_graphite_rule_paths", Help: "Graphite paths of which it is known what the rule files say."},
		func() float64 { n, _ := p.now.Load().known.size(); return float64(n) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_graphite_rule_bytes", Help: "Bytes held by what is known of Graphite paths and rules."},
		func() float64 { _, n := p.now.Load().known.size(); return float64(n) })
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	p.work.Go(func() { p.files.Watch(ctx, o.Logger) })
	return p, nil
}

// Close ends the watch of the files.
func (p *Pipeline) Close() error {
	p.stop()
	p.work.Wait()
	return nil
}

// take puts rules in force.
func (p *Pipeline) take(r *rules.Rules) {
	g := &generation{number: 1, rules: r, known: newTable(rand.Uint64(), p.o.TableBytes)}
	if old := p.now.Load(); old != nil {
		g.number = old.number + 1
	}
	p.now.Store(g)
}

// Pass takes a point by its path as it was received, gives it to its aggregates, and returns the path to
// store it under. If the point is not to be stored, it returns the reason. The time is in Unix
// nanoseconds. It does not keep the path. The one that it returns must not be changed.
func (p *Pipeline) Pass(tenant string, path []byte, t int64, value float64) (stored []byte, dropped string) {
	g := p.now.Load()
	d, h := g.known.get(path)
	if d == nil {
		d = decide(g.rules, !p.o.AggregatesOnly, string(path))
		if d.failed != nil {
			p.logFailure(string(path), d.failed)
		}
		g.known.put(h, d)
	}
	if d == passes {
		return path, ""
	}
	if d.aggregates != nil {
		p.o.Aggregator.Take(g.number, tenant, d.aggregates, t/int64(time.Second), value)
	}
	switch {
	case d.dropped != "":
		return nil, d.dropped
	case d.path == nil:
		return path, ""
	}
	return d.path, ""
}

// Sync makes durable what aggregates have taken of points that Pass returned for.
func (p *Pipeline) Sync() error {
	if p.o.Aggregator == nil {
		return nil
	}
	return p.o.Aggregator.Sync()
}

// logFailure logs a rule that failed, at most once a second.
func (p *Pipeline) logFailure(path string, err error) {
	now := time.Now().Unix()
	if last := p.logged.Load(); last == now || !p.logged.CompareAndSwap(last, now) {
		return
	}
	p.o.Logger.Warn("a rule of carbon fails; the points of the path are dropped", "path", path, "err", err)
}
