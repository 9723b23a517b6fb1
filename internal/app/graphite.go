package app

import (
	"github.com/shaledb/shale/internal/api"
	graphiteapi "github.com/shaledb/shale/internal/api/graphite"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/read/graphite"
)

// graphiteOptions connects Graphite's API to an open store.
func graphiteOptions(_ config.Config, e *Engine, shared api.Options) graphiteapi.Options {
	return graphiteapi.Options{
		Options: shared, Functions: graphiteapi.Described(graphite.Table()), Render: graphite.New(graphite.Options{Read: e.Querier()}),
	}
}
