package logql

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/patterns"
	"github.com/shaledb/shale/internal/read/results"
)

// Options build an Engine.
type Options struct {
	Read *read.Querier
	// Workers is how many goroutines a query begins with; 0: as many as Go has threads.
	Workers int
	// Watch tells of lines that become durable; without it there is no Tail.
	Watch Watcher
	// Further has lines that Watch does not tell of; nil: there is none.
	Further Follower
	// Patterns keeps the patterns of lines that arrived; nil: all patterns come from samples.
	Patterns *patterns.Keeper
	// Results keeps values of queries; nil: nothing is kept.
	Results    *results.Tier
	Now        func() time.Time // nil means the machine's clock
	Registerer prometheus.Registerer
}

// Engine answers LogQL. It is safe for concurrent use and holds nothing between queries.
type Engine struct {
	read     *read.Querier
	workers  int
	hub      *hub             // nil: no Tail
	further  Follower         // nil: none
	patterns *patterns.Keeper // nil: none
	results  *results.Tier    // nil: none
	now      func() time.Time
}

// New returns an Engine.
func New(o Options) *Engine {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	e := &Engine{read: o.Read, workers: o.Workers, further: o.Further, patterns: o.Patterns, results: o.Results, now: o.Now}
	if e.now == nil {
		e.now = time.Now
	}
	if o.Watch != nil || o.Further != nil {
		e.hub = &hub{watch: o.Watch, metrics: newMetrics(o.Registerer)}
	}
	return e
}
