package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/graphite/aggregate"
	"github.com/shaledb/shale/internal/write/graphite/relay"
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
	// Relay sends points to other carbons; nil if the rules name none.
	Relay *relay.Relay
	// RelayOnly means that points that are sent to other carbons are not stored.
	RelayOnly  bool
	Registerer prometheus.Registerer
	Logger     *slog.Logger
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
	queues []*relay.Queue // by the index of the destination
	// shared has the decisions that are relays alone, by their relays.
	shared sync.Map
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
func (p *Pipeline) take(r *rules.Rules) error {
	g := &generation{number: 1, rules: r, known: newTable(rand.Uint64(), p.o.TableBytes)}
	leave := func() {}
	if r.Router != nil {
		var err error
		if g.queues, leave, err = p.o.Relay.Use(r.Router.Conf()); err != nil {
			return err
		}
	}
	if old := p.now.Load(); old != nil {
		g.number = old.number + 1
	}
	p.now.Store(g)
	leave() // after that: points must not come to a queue that is closed
	return nil
}

// share returns one decision for all paths that have the same relays and nothing else.
func (g *generation) share(d *decision) *decision {
	if d.relays == nil || d.dropped != "" || d.path != nil || d.aggregates != nil {
		return d
	}
	d.isShared = true
	one, _ := g.shared.LoadOrStore(fmt.Sprint(d.relays), d)
	return one.(*decision)
}

// Pass takes a point by its path as it was received, gives it to its aggregates, and returns the path to
// store it under. If the point is not to be stored, it returns the reason. The time is in Unix
// nanoseconds. It does not keep the path. The one that it returns must not be changed.
func (p *Pipeline) Pass(tenant string, path []byte, t int64, value float64) (stored []byte, dropped string) {
	g := p.now.Load()
	d, h := g.known.get(path)
	if d == nil {
		d = g.share(decide(g.rules, !p.o.AggregatesOnly, string(path)))
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
	if d.dropped != "" {
		return nil, d.dropped
	}
	if d.path != nil {
		path = d.path
	}
	if d.relays != nil {
		for _, i := range d.relays {
			g.queues[i].Add(path, t/int64(time.Second), value)
		}
		if p.o.RelayOnly {
			return nil, write.ReasonRelayed
		}
	}
	return path, ""
}

// Relay sends points that the process makes, such as aggregates, and makes durable that they will be sent.
// It reports whether they are to be stored, too. Times are in Unix seconds.
func (p *Pipeline) Relay(paths []string, times []int64, values []float64) (store bool, err error) {
	g := p.now.Load()
	if g.rules.Router == nil {
		return true, nil
	}
	for i, path := range paths {
		to, err := g.rules.Router.Route(path)
		if err != nil {
			p.logFailure(path, err)
		}
		for _, n := range to {
			g.queues[n].Add([]byte(path), times[i], values[i])
		}
	}
	return !p.o.RelayOnly, p.o.Relay.Sync()
}

// Sync makes durable what aggregates and queues have taken of points that Pass returned for.
func (p *Pipeline) Sync() error {
	var errs [2]error
	if p.o.Aggregator != nil {
		errs[0] = p.o.Aggregator.Sync()
	}
	if p.o.Relay != nil {
		errs[1] = p.o.Relay.Sync()
	}
	return errors.Join(errs[:]...)
}

// logFailure logs a rule that failed, at most once a second.
func (p *Pipeline) logFailure(path string, err error) {
	now := time.Now().Unix()
	if last := p.logged.Load(); last == now || !p.logged.CompareAndSwap(last, now) {
		return
	}
	p.o.Logger.Warn("a rule of carbon fails; the points of the path are dropped", "path", path, "err", err)
}
