package loki

import (
	"time"

	"github.com/shaledb/shale/internal/api"
)

// Options build a Handler.
type Options struct {
	api.Options
	Engine Engine
	// Deletions deletes lines; nil: lines cannot be deleted.
	Deletions Deletions
	// Retention returns how long lines of a tenant are kept that no rule selects; 0: forever. Nil: forever.
	Retention func(tenant string) time.Duration
	// MaxTails bounds the tail connections of one tenant, 10 by default. All tenants together have at most 16
	// times as many. MaxTailTime bounds the duration of a connection, 1 hour by default.
	MaxTails    int
	MaxTailTime time.Duration
}

func (o *Options) setDefaults() {
	o.Options.SetDefaults()
	if o.MaxTails <= 0 {
		o.MaxTails = 10
	}
	if o.MaxTailTime <= 0 {
		o.MaxTailTime = time.Hour
	}
}
