package app

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/write/graphite"
	"github.com/shaledb/shale/internal/write/graphite/pipeline"
)

// carbon is what the process does with Graphite points besides storing them, by files of carbon.
type carbon struct {
	pipeline *pipeline.Pipeline // nil: no file says anything
}

func openCarbon(c *config.Config, registry *prometheus.Registry, log *slog.Logger) (carbon, error) {
	if !c.Carbon.Any() {
		return carbon{}, nil
	}
	p, err := pipeline.Open(pipeline.Options{Rules: c.Carbon, TableBytes: splitMemory(c.MemoryBytes).forCarbon().paths, Registerer: registry, Logger: log})
	return carbon{p}, err
}

// rules returns what applies to received points, or nil.
func (c carbon) rules() graphite.Rules {
	if c.pipeline == nil {
		return nil
	}
	return c.pipeline
}

func (c carbon) close() error {
	if c.pipeline == nil {
		return nil
	}
	return c.pipeline.Close()
}
