package prom

import (
	"context"
	"log/slog"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Options build a Handler.
type Options struct {
	// Engine evaluates queries. Its own timeout bounds them.
	Engine promql.QueryEngine
	// Parser parses queries, before the engine does, and the selectors of match[]. It must accept what the engine's
	// accepts; nil means upstream's parser without experimental syntax.
	Parser parser.Parser
	// SubqueryStep is the engine's step of subqueries that give none; 1 minute by default.
	SubqueryStep time.Duration
	// Queryable returns the series of a tenant. It is called once for each request.
	Queryable func(tenant string, q *model.Quota, c *model.Cost) storage.Queryable
	// Exemplars returns the exemplars of a tenant, as Queryable its series; nil: there are none.
	Exemplars func(tenant string, q *model.Quota, c *model.Cost) storage.ExemplarQueryable
	// Metadata emits what is known of a metric family, or of all when family is empty, in any order, until emit returns
	// false. A family may come several times, with other metadata. nil: nothing is known.
	Metadata func(tenant, family string, emit func(family string, m model.Metadata) bool) error
	// TSDB counts the series of a tenant, with the first limit lines of each list; nil: all is 0.
	TSDB func(ctx context.Context, tenant string, limit int, q *model.Quota, c *model.Cost) (TSDBStatus, error)
	// Flags are the settings by their names, and Config is the configuration in YAML. Whoever may query sees both: they
	// must hold no secret. nil: nothing.
	Flags  func() map[string]string
	Config func() string
	// Runtime describes the process; nil: nothing of it is known.
	Runtime func() RuntimeInfo
	// LookbackDelta is how old a sample may be that federation gives: that of the engine; 5 minutes by default.
	LookbackDelta time.Duration
	// CORSOrigin must match the whole origin of the pages whose scripts may read answers; nil: any.
	CORSOrigin *regexp.Regexp
	// Slots are the turns of requests, and Pool is the memory of all queries together, where other dialects share them;
	// nil: there are as many and there is as much as Limits says.
	Slots      *api.Slots
	Pool       *model.QueryPool
	Limits     Limits
	Version    Version
	Now        func() time.Time // nil means the machine's clock
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil means none
}

// Limits bound one request and all requests together. Zero means the default, and for the limits of a query, none.
type Limits struct {
	// MaxSeries, MaxSamples and MaxBytes bound what one query may read (see model.Quota).
	MaxSeries, MaxSamples, MaxBytes int64
	// PoolBytes bounds the memory of all queries together.
	PoolBytes int64
	// MaxConcurrent bounds the requests that are worked on at one time; 20 by default.
	MaxConcurrent int
	// MaxWait is how long a request waits for its turn before it is refused with 503; 10 s by default.
	MaxWait time.Duration
	// MaxBodyBytes bounds the form of a POST; 1 MiB by default.
	MaxBodyBytes int64
	// Timeout bounds requests that the engine does not see, such as series and labels, and how long a client may take to
	// read an answer; 2 minutes by default.
	Timeout time.Duration
	// MaxReadSamples bounds the samples that one query of a remote read returns as samples; 50 million by default.
	MaxReadSamples int
	// MaxReadFrameBytes bounds a frame of a remote read that returns chunks, but for the chunk with which it is exceeded;
	// 1 MiB by default.
	MaxReadFrameBytes int
}

// Version is what build information says.
type Version struct {
	Version, Revision, Branch, BuildUser, BuildDate, GoVersion string
}

func (o *Options) setDefaults() {
	if o.Parser == nil {
		o.Parser = parser.NewParser(parser.Options{})
	}
	if o.SubqueryStep <= 0 {
		o.SubqueryStep = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LookbackDelta <= 0 {
		o.LookbackDelta = 5 * time.Minute
	}
	l := &o.Limits
	if l.MaxConcurrent <= 0 {
		l.MaxConcurrent = 20
	}
	if o.Slots == nil {
		o.Slots = api.NewSlots(l.MaxConcurrent)
	}
	if o.Pool == nil && l.PoolBytes > 0 {
		o.Pool = &model.QueryPool{MaxBytes: l.PoolBytes}
	}
	if l.MaxWait <= 0 {
		l.MaxWait = 10 * time.Second
	}
	if l.MaxBodyBytes <= 0 {
		l.MaxBodyBytes = 1 << 20
	}
	if l.Timeout <= 0 {
		l.Timeout = 2 * time.Minute
	}
	if l.MaxReadSamples <= 0 {
		l.MaxReadSamples = 50_000_000
	}
	if l.MaxReadFrameBytes <= 0 {
		l.MaxReadFrameBytes = 1 << 20
	}
}
