package api

import (
	"log/slog"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/answer"
	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/model"
)

// Options are the options that all dialects have.
type Options struct {
	// Slots are the turns of requests, which dialects may share; nil: Limits.MaxConcurrent of its own.
	Slots *Slots
	// Pool is the memory of all queries together, which dialects may share; nil: unbounded.
	Pool *model.QueryPool
	// Processors are those of the machine, which dialects may share; nil: queries use them as they like.
	Processors *model.Processors
	// Forms is the memory of all bodies of requests, which they keep while they wait; nil: unbounded. It is
	// not a part of Pool: a query could wait there for memory that others hold as they wait.
	Forms *model.QueryPool
	// Waits count the waits for memory of the pool; nil: they are not counted.
	Waits *WaitMetrics
	// Budgets bound what queries read of the bucket, and price it; nil: nothing is bounded or explained.
	Budgets *bill.Budgets
	// Meter counts what each tenant reads; nil: nothing is counted.
	Meter Meter
	// Answers keeps responses; nil: each request is computed.
	Answers *answer.Tier
	// Again reports whether a request that failed with an error may succeed at once. It is repeated then, once,
	// unless a part of its response was sent; nil: none is.
	Again func(error) bool
	// CORSOrigin must match the whole origin of a page whose scripts may read responses; nil: any.
	CORSOrigin *regexp.Regexp
	Limits     Limits
	// LimitsOf returns the limits of a tenant, of which Timeout, MaxOfTenant, MaxSeries, MaxSamples, MaxBytes
	// and MaxRange count; nil: all tenants have Limits. A query over several tenants has the least of each.
	LimitsOf   func(tenant string) *Limits
	Version    Version
	Now        func() time.Time // nil: the system clock
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Meter counts what tenants read. It is safe for concurrent use.
type Meter interface {
	// Queried counts a request of some tenants that reads, whatever became of it.
	Queried(tenants []string)
	// Read counts what a query of some tenants has read. A query that several requests wait for has read once.
	Read(tenants []string, cost *model.Cost)
}

// Limits bound one request, and all that run at the same time. Zero means the default, or no limit for
// MaxSeries, MaxSamples and MaxBytes. The tags make the fields settings: see package config.
type Limits struct {
	// Timeout bounds requests that have a Deadline, and the time that a client takes to read a response; 2
	// minutes by default.
	Timeout time.Duration `name:"query.timeout" tenant:"own" type:"time" default:"2m" placeholder:"TIME" min:"1ms" help:"Longest run time of one query."`
	// MaxConcurrent is the number of slots where Options have none; 20 by default.
	MaxConcurrent int `name:"query.max-concurrent" type:"count" default:"16" placeholder:"N" min:"1" help:"Most queries that run at the same time. Further queries wait."`
	// MaxOfTenant bounds the requests of one tenant that run or wait for their turn.
	MaxOfTenant int `name:"query.tenant-concurrent" tenant:"own" type:"count" default:"0" placeholder:"N" min:"0" help:"Most queries of each tenant that run or wait at the same time; further ones are refused with 429. 0: as many as leave a quarter of the turns to other tenants."`
	// MaxSeries, MaxSamples and MaxBytes bound what one query may read (see model.Quota).
	MaxSeries  int64 `name:"query.max-series" tenant:"own" type:"count" default:"2000000" placeholder:"N" min:"0" help:"Most series that one query may select. 0: no limit."`
	MaxSamples int64 `name:"query.max-samples" tenant:"own" type:"count" default:"50000000" placeholder:"N" min:"0" help:"Most samples that one query may read or hold. 0: no limit."`
	// MaxRange bounds the time that one query may cover.
	MaxRange time.Duration `name:"query.max-range" tenant:"own" type:"time" default:"0" placeholder:"TIME" min:"0" help:"Longest time between the oldest and the newest row that one query may ask for, with the time that its selectors look back, and without what retention hides. Lists of labels and series have no such limit. 0: no limit."`
	// MaxLines bounds the lines that a query may ask for; 5,000 by default.
	MaxLines int `name:"query.max-lines" type:"count" default:"5000" placeholder:"N" min:"1" help:"Most log lines that one query may ask for."`
	// MaxResultSeries bounds the series in the result of a metric query over lines; 5,000 by default.
	MaxResultSeries int   `name:"query.max-result-series" type:"count" default:"5000" placeholder:"N" min:"1" help:"Most series in the result of one metric query over log lines."`
	MaxBytes        int64 `kong:"-"`
	// MaxWait is how long a request waits for its turn before it is refused; 10 s by default.
	MaxWait time.Duration `kong:"-"`
	// MaxBodyBytes bounds the body of a POST; 1 MiB by default.
	MaxBodyBytes int64 `kong:"-"`
}

// Version is the build information that clients ask for.
type Version struct {
	Version, Revision, Branch, BuildUser, BuildDate, GoVersion string
}

// SetDefaults replaces what is not set by its default.
func (o *Options) SetDefaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &o.Limits
	if l.MaxConcurrent <= 0 {
		l.MaxConcurrent = 20
	}
	if o.Slots == nil {
		o.Slots = NewSlots(l.MaxConcurrent)
	}
	if l.MaxLines <= 0 {
		l.MaxLines = 5000
	}
	if l.MaxResultSeries <= 0 {
		l.MaxResultSeries = 5000
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
}
