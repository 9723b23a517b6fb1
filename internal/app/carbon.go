package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/graphite"
	"github.com/shaledb/shale/internal/write/graphite/agents"
	"github.com/shaledb/shale/internal/write/graphite/aggregate"
	"github.com/shaledb/shale/internal/write/graphite/pipeline"
	"github.com/shaledb/shale/internal/write/graphite/relay"
)

// The rooms fit together.
var (
	_ aggregate.Sink = (*madePoints)(nil)
	_ agents.Sink    = (*graphite.Own)(nil)
	_ graphite.Rules = (*pipeline.Pipeline)(nil)
)

// aggregationDir is the folder in the data folder for the log of aggregation.
const aggregationDir = "aggregation"

// relayDir is the folder in the data folder for the queues of the relay.
const relayDir = "relay"

// carbon is what the process does with Graphite points besides storing them, by files of carbon.
type carbon struct {
	pipeline   *pipeline.Pipeline    // nil: no file says anything
	aggregator *aggregate.Aggregator // nil: there are no aggregates
	relay      *relay.Relay          // nil: no points are sent to other carbons
	agents     *agents.Writer        // nil: the series are not written
}

// carbonPlace is where points go, and what rules keep.
type carbonPlace struct {
	path *write.Path
	fs   vfs.FS
	dir  string // the data folder
}

func openCarbon(c *config.Config, at carbonPlace, registry *prometheus.Registry, log *slog.Logger) (k carbon, err error) {
	if c.Carbon.Any() {
		k, err = openRules(c, at, registry, log)
	}
	if err == nil && c.Agents.Interval > 0 {
		k.agents = startAgents(c, at.path, registry, log)
	}
	return k, err
}

// startAgents begins to write the series that carbon has about itself.
func startAgents(c *config.Config, path *write.Path, registry *prometheus.Registry, log *slog.Logger) *agents.Writer {
	host, err := os.Hostname()
	if err != nil {
		host = "shale"
	}
	return agents.Start(agents.Options{
		Interval: c.Agents.Interval, Prefix: c.Agents.Prefix, Host: host, Tenant: model.DefaultTenant,
		Gatherer: registry, Sink: graphite.NewOwn(path, log), Now: path.Now, Logger: log,
	})
}

func openRules(c *config.Config, at carbonPlace, registry *prometheus.Registry, log *slog.Logger) (k carbon, err error) {
	split := splitMemory(c.MemoryBytes).forCarbon()
	if c.Carbon.Relay != "" {
		k.relay, err = relay.Open(relay.Options{
			FS: at.fs, Dir: at.fs.PathJoin(at.dir, relayDir), QueueBytes: c.Relay.Queue, Cert: c.Relay.Cert, Key: c.Relay.Key,
			Registerer: registry, Logger: log,
		})
		if err != nil {
			return carbon{}, err
		}
	}
	made := &madePoints{own: graphite.NewOwn(at.path, log), opened: make(chan struct{})}
	if c.Carbon.Aggregations != "" {
		k.aggregator, err = aggregate.Open(aggregate.Options{
			FS: at.fs, Dir: at.fs.PathJoin(at.dir, aggregationDir), MaxBytes: split.aggregates,
			Intervals: int64(c.Aggregation.Intervals), WriteBack: int64(c.Aggregation.WriteBack / time.Second),
			Sink: made, Now: at.path.Now, Registerer: registry, Logger: log,
		})
		if err != nil {
			return carbon{}, errors.Join(err, k.close())
		}
	}
	k.pipeline, err = pipeline.Open(pipeline.Options{
		Rules: c.Carbon, TableBytes: split.paths, Aggregator: k.aggregator, AggregatesOnly: !c.Aggregation.ForwardAll.On(),
		Relay: k.relay, RelayOnly: !c.Relay.Store.On(), Registerer: registry, Logger: log,
	})
	if err != nil {
		return carbon{}, errors.Join(err, k.close())
	}
	made.pipeline = k.pipeline
	close(made.opened)
	return k, nil
}

// madePoints takes the points of aggregates: it relays and stores them.
type madePoints struct {
	own *graphite.Own
	// pipeline is set when opened is closed.
	pipeline *pipeline.Pipeline
	opened   chan struct{}
}

// Store is [aggregate.Sink.Store].
func (m *madePoints) Store(ctx context.Context, tenant string, paths []string, times []int64, values []float64) error {
	select {
	case <-m.opened:
	case <-ctx.Done():
		return ctx.Err()
	}
	store, err := m.pipeline.Relay(paths, times, values)
	if err != nil || !store {
		return err
	}
	return m.own.Store(ctx, tenant, paths, times, values)
}

// rules returns what applies to received points, or nil.
func (c carbon) rules() graphite.Rules {
	if c.pipeline == nil {
		return nil
	}
	return c.pipeline
}

// close waits until nothing uses the store any more. REQUIRES: no points are received. It may be called
// again.
func (c carbon) close() error {
	var errs []error
	if c.agents != nil {
		c.agents.Close()
	}
	if c.pipeline != nil {
		errs = append(errs, c.pipeline.Close())
	}
	if c.aggregator != nil {
		errs = append(errs, c.aggregator.Close())
	}
	if c.relay != nil {
		errs = append(errs, c.relay.Close())
	}
	return errors.Join(errs...)
}

// policies are the policies of Graphite names, read again when their files change.
type policies struct {
	*policy.Files
	stop context.CancelFunc
	done sync.WaitGroup
}

func openPolicies(c config.Config, log *slog.Logger) (*policies, error) {
	files, err := policy.Open(c.Policies)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &policies{Files: files, stop: cancel}
	p.done.Go(func() { files.Watch(ctx, log) })
	return p, nil
}

func (p *policies) close() {
	p.stop()
	p.done.Wait()
}
