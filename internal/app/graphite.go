package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	graphiteapi "github.com/shaledb/shale/internal/api/graphite"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/names"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/store/archive"
	"github.com/shaledb/shale/internal/store/head/query"
)

// The rooms fit together.
var (
	_ read.NameSource    = (*query.Source)(nil)
	_ read.NameSource    = (*archive.Archive)(nil)
	_ graphiteapi.Finder = (*names.Finder)(nil)
)

// newFinder returns what finds the names of Graphite in an open store, to be closed.
func newFinder(c *config.Config, e *Engine, pool *model.QueryPool, registry *prometheus.Registry) *names.Finder {
	return names.New(names.Options{From: e.Querier(), Limits: c.Names, Pool: pool, MaxBytes: c.Query.MaxBytes, Registerer: registry})
}

// nameFinder finds names for targets.
type nameFinder struct{ *names.Finder }

// Expand is [graphite.Finder.Expand].
func (f nameFinder) Expand(ctx context.Context, q *graphite.Query, pattern string, r model.TimeRange) ([]string, error) {
	found, err := f.Find(ctx, &names.Query{Tenant: q.Tenant, Range: r, LeavesOnly: true, Quota: q.Quota, Cost: q.Cost}, pattern)
	paths := make([]string, len(found))
	for i := range found {
		paths[i] = found[i].Path
	}
	return paths, err
}

// graphiteOptions connects Graphite's API to an open store.
func graphiteOptions(found *names.Finder, e *Engine, files *policies, shared api.Options) graphiteapi.Options {
	of := func() func(string) (policy.Policy, error) { return files.Policies().Of }
	engine := graphite.New(graphite.Options{Read: e.Querier(), Finder: nameFinder{found}, Policies: of})
	return graphiteapi.Options{Options: shared, Names: found, Tags: engine, Functions: graphiteapi.Described(graphite.Table()), Render: engine}
}
