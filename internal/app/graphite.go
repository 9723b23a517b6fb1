package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/carbonlink"
	graphiteapi "github.com/shaledb/shale/internal/api/graphite"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/events"
	"github.com/shaledb/shale/internal/read/graphite/names"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/store/archive"
	"github.com/shaledb/shale/internal/store/compact"
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
	have := func() bool { return e.o.Rollups != nil && e.o.Rollups().HaveRollups() }
	return names.New(names.Options{From: e.Querier(), Limits: c.Names, Pool: pool, MaxBytes: c.Query.MaxBytes, Rollups: have, Registerer: registry, Logger: e.o.Logger})
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

// eventTimes finds the times of events for targets.
func eventTimes(reader *events.Reader) func(context.Context, *graphite.Query, int64, int64, []string) ([]int64, error) {
	return func(ctx context.Context, q *graphite.Query, from, until int64, tags []string) ([]int64, error) {
		found, err := reader.Find(ctx, &events.Query{
			Tenant: q.Tenant, Start: from * int64(time.Second), End: until * int64(time.Second), Tags: tags, Quota: q.Quota, Cost: q.Cost,
		})
		times := make([]int64, len(found))
		for i := range found {
			times[i] = found[i].Time / int64(time.Second)
		}
		return times, err
	}
}

// newGraphiteEngine returns what evaluates targets over an open store.
func newGraphiteEngine(found *names.Finder, e *Engine, files *policies, reader *events.Reader) *graphite.Engine {
	of := func() func(string) (policy.Policy, error) { return files.Policies().Of }
	return graphite.New(graphite.Options{Read: e.Querier(), Finder: nameFinder{found}, Policies: of, Rollups: e.rolledPolicies(), Events: eventTimes(reader)})
}

// graphiteOptions connects Graphite's API to an open store. Events are lines.
func graphiteOptions(found *names.Finder, engine *graphite.Engine, reader *events.Reader, shared api.Options) graphiteapi.Options {
	return graphiteapi.Options{Options: shared, Names: found, Tags: engine, Functions: graphiteapi.Described(graphite.Table()), Render: engine, Events: reader}
}

// freshPoints answers queries of the cache of carbon, with points of the default tenant.
type freshPoints struct {
	*graphite.Engine
	limits api.Limits
	// pool is the memory of queries, and forms that of what is on its way to and from clients.
	pool, forms *model.QueryPool
}

// recent is how far back these answers go. A carbon-cache that is not overloaded writes points within
// minutes.
const recent = time.Hour

// Points is [carbonlink.Source.Points].
func (f freshPoints) Points(ctx context.Context, path string) ([]int64, []float64, error) {
	quota := f.quota()
	defer quota.Release()
	now := time.Now().UTC()
	return f.Engine.Points(ctx, &graphite.Query{
		Tenant: model.DefaultTenant, From: now.Add(-recent).Unix(), Until: now.Unix(), Now: now, Quota: quota, Cost: &model.Cost{},
	}, path)
}

// quota returns what one request is charged to.
func (f freshPoints) quota() *model.Quota {
	l := f.limits
	return &model.Quota{Tenant: model.DefaultTenant, MaxSeries: l.MaxSeries, MaxSamples: l.MaxSamples, MaxBytes: l.MaxBytes, Pool: f.pool}
}

// transit returns what a request and its answer are charged to while they are sent.
func (f freshPoints) transit() *model.Quota {
	return &model.Quota{MaxBytes: f.limits.MaxBytes, Pool: f.forms}
}

// listenCarbonlink answers queries of the cache of carbon, if a setting asks for it.
func listenCarbonlink(c *config.Config, engine *graphite.Engine, pool, forms *model.QueryPool, registry *prometheus.Registry, log *slog.Logger) (*carbonlink.Server, error) {
	if c.GraphiteCacheListen == "" {
		return nil, nil
	}
	source := freshPoints{engine, c.Query, pool, forms}
	return carbonlink.Listen(carbonlink.Options{
		Listen: c.GraphiteCacheListen, Source: source, Quota: source.quota, Transit: source.transit, MaxConnections: c.Connections,
		Timeout: c.Query.Timeout, Registerer: registry, Logger: log,
	})
}

// rollups opens the files of policies, unless they are open, and returns the policies of rollups; nil: they
// are off.
func (s *servers) rollups(c *config.Config, log *slog.Logger) (_ func() *policy.Policies, err error) {
	if s.policies == nil {
		if s.policies, err = openPolicies(*c, log); err != nil {
			return nil, err
		}
	}
	if !c.GraphiteRollups.On() {
		return nil, nil
	}
	return s.policies.Policies, nil
}

// summaries reports whether rollups have summaries of slots for PromQL.
func summaries(c *config.Config) bool { return c.QueryRollups != shalepromql.RollupsOff }

// rollups returns how compaction makes rollups now, or nil if it makes none.
func (e *Engine) rollups() *compact.Rollups { return rollupsBy(e.o.Rollups, e.o.Summaries) }

// rollupRules names the rules by which rollups are made, with or without summaries.
func rollupRules(p *policy.Policies, summaries bool) string {
	if !summaries {
		return p.ID()
	}
	h := sha256.Sum256([]byte("summaries of " + p.ID()))
	return hex.EncodeToString(h[:8])
}

// rollupsBy returns how compaction makes rollups by the policies of now; nil: they are off. A store without
// policies of several archives has no block read for them.
func rollupsBy(now func() *policy.Policies, summaries bool) *compact.Rollups {
	if now == nil {
		return nil
	}
	p := now()
	return &compact.Rollups{
		ID: rollupRules(p, summaries), Makes: p.HaveRollups(),
		Of: func(l model.Labels) ([]int64, func(step int64, rows, dst *model.Rows), error) {
			of, err := p.Of(graphite.NameOf(l))
			roll := of.Roll
			if summaries {
				roll = func(step int64, rows, dst *model.Rows) {
					of.Roll(step, rows, dst)
					model.AppendSummaries(step, rows, dst)
					dst.Normalize()
				}
			}
			return of.RollupSteps(), roll, err
		},
		Keep: func(step int64) time.Duration { return time.Duration(p.KeepRollups(step)) * time.Second },
	}
}

// rolledPolicies returns the policies for renders, with the name of the rules of their rollups, which is
// empty if they make none; nil: rollups are off.
func (e *Engine) rolledPolicies() func() (func(string) (policy.Policy, error), string) {
	if e.o.Rollups == nil {
		return nil
	}
	return func() (func(string) (policy.Policy, error), string) {
		p := e.o.Rollups()
		if !p.HaveRollups() {
			return p.Of, ""
		}
		return p.Of, rollupRules(p, e.o.Summaries)
	}
}

// promRollups returns the rollups that PromQL may use now; nil: there are none.
func (e *Engine) promRollups() *shalepromql.Rollups {
	if e == nil || e.o.Rollups == nil || !e.o.Summaries {
		return nil
	}
	p := e.o.Rollups()
	if !p.HaveRollups() {
		return nil
	}
	return &shalepromql.Rollups{
		ID: rollupRules(p, true), Steps: p.RollupSteps(),
		Of: func(l model.Labels) ([]int64, error) {
			of, err := p.Of(graphite.NameOf(l))
			return of.RollupSteps(), err
		},
	}
}
