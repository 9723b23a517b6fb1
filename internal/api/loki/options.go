package loki

import (
	"log/slog"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Options build a Handler.
type Options struct {
	Engine Engine
	// Slots are the turns of requests, and Pool is the memory of all queries together, where other dialects share them;
	// nil: there are as many and there is as much as Limits says.
	Slots *api.Slots
	Pool  *model.QueryPool
	// CORSOrigin must match the whole origin of the pages whose scripts may read answers; nil: any.
	CORSOrigin *regexp.Regexp
	Limits     Limits
	Version    Version
	Now        func() time.Time // nil means the machine's clock
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil means none
}

// Limits bound one request and all requests together. Zero means the default, and for the limits of a query, none.
type Limits struct {
	// MaxSeries and MaxBytes bound what one query may read (see model.Quota).
	MaxSeries, MaxBytes int64
	// PoolBytes bounds the memory of all queries together.
	PoolBytes int64
	// MaxConcurrent bounds the requests that are worked on at one time; 20 by default.
	MaxConcurrent int
	// MaxWait is how long a request waits for its turn before it is refused with 429; 10 s by default.
	MaxWait time.Duration
	// MaxEntries bounds the parameter limit of a query of lines; 5,000 by default.
	MaxEntries int
	// MaxBodyBytes bounds the form of a POST; 1 MiB by default.
	MaxBodyBytes int64
	// Timeout bounds each request but those that follow lines, and how long a client may take to read an answer; 2 minutes
	// by default.
	Timeout time.Duration
	// MaxTails bounds the connections of one tenant that follow lines, 10 by default, and MaxTailTime how long one of them
	// lasts, 1 hour by default. Those of all tenants together are at most 16 times as many.
	MaxTails    int
	MaxTailTime time.Duration
}

// Version is what build information says.
type Version struct {
	Version, Revision, Branch, BuildUser, BuildDate, GoVersion string
}

func (o *Options) setDefaults() {
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
		o.Slots = api.NewSlots(l.MaxConcurrent)
	}
	if o.Pool == nil && l.PoolBytes > 0 {
		o.Pool = &model.QueryPool{MaxBytes: l.PoolBytes}
	}
	if l.MaxWait <= 0 {
		l.MaxWait = 10 * time.Second
	}
	if l.MaxEntries <= 0 {
		l.MaxEntries = 5000
	}
	if l.MaxBodyBytes <= 0 {
		l.MaxBodyBytes = 1 << 20
	}
	if l.Timeout <= 0 {
		l.Timeout = 2 * time.Minute
	}
	if l.MaxTails <= 0 {
		l.MaxTails = 10
	}
	if l.MaxTailTime <= 0 {
		l.MaxTailTime = time.Hour
	}
}
