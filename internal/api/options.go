package api

import (
	"log/slog"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Options are the options that all dialects have.
type Options struct {
	// Slots are the turns of requests, which dialects may share; nil: 20 of its own.
	Slots *Slots
	// Pool is the memory of all queries together, which dialects may share; nil: unbounded.
	Pool *model.QueryPool
	// CORSOrigin must match the whole origin of a page whose scripts may read responses; nil: any.
	CORSOrigin *regexp.Regexp
	Limits     Limits
	Version    Version
	Now        func() time.Time // nil: the system clock
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Limits bound one request. Zero means the default, or no limit for the three of a query.
type Limits struct {
	// MaxSeries, MaxSamples and MaxBytes bound what one query may read (see model.Quota).
	MaxSeries, MaxSamples, MaxBytes int64
	// MaxWait is how long a request waits for its turn before it is refused; 10 s by default.
	MaxWait time.Duration
	// MaxBodyBytes bounds the body of a POST; 1 MiB by default.
	MaxBodyBytes int64
	// Timeout bounds requests that have a Deadline, and the time that a client takes to read a response; 2
	// minutes by default.
	Timeout time.Duration
}

// Version is the build information that clients ask for.
type Version struct {
	Version, Revision, Branch, BuildUser, BuildDate, GoVersion string
}

// SetDefaults replaces what is not set by its default.
func (o *Options) SetDefaults() {
	if o.Slots == nil {
		o.Slots = NewSlots(20)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &o.Limits
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
