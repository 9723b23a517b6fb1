package app

import (
	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/graphite"
	"github.com/shaledb/shale/internal/config"
)

// graphiteOptions connects Graphite's API to an open store.
func graphiteOptions(_ config.Config, _ *Engine, shared api.Options) graphite.Options {
	return graphite.Options{Options: shared}
}
