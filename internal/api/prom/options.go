package prom

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/features"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
)

// Options build a Handler.
type Options struct {
	api.Options
	// Engine evaluates queries. It has a timeout of its own.
	Engine promql.QueryEngine
	// Parser parses queries before the engine does, and the selectors of match[]. It must accept what the
	// engine's parser accepts; nil: upstream's parser without experimental syntax.
	Parser parser.Parser
	// SubqueryStep is the engine's step for subqueries without one; 1 minute by default.
	SubqueryStep time.Duration
	// Queryable returns the series of a tenant. It is called at most once for each request.
	Queryable func(tenant string, q *model.Quota, c *model.Cost) storage.Queryable
	// Rollups returns the rollups of now for queries that use them, if there are any; RollupUse says which do.
	Rollups   func() *shalepromql.Rollups
	RollupUse shalepromql.RollupUse
	// Exemplars returns the exemplars of a tenant; nil: there are none.
	Exemplars func(tenant string, q *model.Quota, c *model.Cost) storage.ExemplarQueryable
	// Metadata emits the metadata of a metric family, or of all if family is empty, in any order, until emit
	// returns false. It may emit a family several times with different metadata. nil: there is none.
	Metadata func(tenant, family string, cost *model.Cost, emit func(family string, m model.Metadata) bool) error
	// TSDB counts the series of a tenant, with the first limit lines of each list; nil: all counts are 0.
	TSDB func(ctx context.Context, tenant string, limit int, q *model.Quota, c *model.Cost) (TSDBStatus, error)
	// Cardinality counts what makes series; nil: all counts are 0.
	Cardinality Cardinality
	// Asked is told the labels that expressions name outside of selectors; nil: nothing.
	Asked func(tenant string, labels ...string)
	// Blocks returns the blocks that may hold samples of a tenant; nil: there are none.
	Blocks func(tenant string) []Block
	// Delete deletes the rows of the series of a tenant that satisfy the matchers, with times from start to
	// end, in Unix nanoseconds, and Clean asks for deleted rows to be dropped soon. nil: both are disabled.
	Delete func(ctx context.Context, tenant string, matchers []*labels.Matcher, start, end int64) error
	Clean  func()
	// Gatherer gives the metrics of Shale itself; nil: there are none.
	Gatherer prometheus.Gatherer
	// Features holds the features of the engine. Those of the API are added. nil: the engine's are unknown.
	Features features.Collector
	// Flags returns the settings by name, and Config the configuration in YAML. Every client that may query
	// sees both, so they must hold no secret. nil: empty.
	Flags  func() map[string]string
	Config func() string
	// Runtime describes the process; nil: an empty description.
	Runtime func() RuntimeInfo
	// LookbackDelta is the maximum age of a sample in federation, which should be that of the engine; 5
	// minutes by default.
	LookbackDelta time.Duration
	// MaxReadSamples bounds the samples of one query of a remote read that returns samples; 50 million by
	// default.
	MaxReadSamples int
	// MaxReadFrameBytes bounds a frame of a remote read that returns chunks, which its last chunk may exceed;
	// 1 MiB by default.
	MaxReadFrameBytes int
}

func (o *Options) setDefaults() {
	o.Options.SetDefaults()
	if o.Parser == nil {
		o.Parser = parser.NewParser(parser.Options{})
	}
	if o.Features == nil {
		o.Features = features.NewRegistry()
	}
	if o.SubqueryStep <= 0 {
		o.SubqueryStep = time.Minute
	}
	if o.LookbackDelta <= 0 {
		o.LookbackDelta = 5 * time.Minute
	}
	if o.MaxReadSamples <= 0 {
		o.MaxReadSamples = 50_000_000
	}
	if o.MaxReadFrameBytes <= 0 {
		o.MaxReadFrameBytes = 1 << 20
	}
}
