package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/app/deletions"
	"github.com/shaledb/shale/internal/app/disk"
	"github.com/shaledb/shale/internal/app/peers"
	"github.com/shaledb/shale/internal/app/progress"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/cache/ram"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/remote"
	"github.com/shaledb/shale/internal/store/changes"
	"github.com/shaledb/shale/internal/store/families"
	"github.com/shaledb/shale/internal/store/retention"
)

// The rooms fit.
var (
	_ read.Source     = (*remote.Source)(nil)
	_ read.NameSource = (*remote.Source)(nil)
)

// errNoHead is what a process cannot do whose engine has no head.
var errNoHead = notInRoles("a process with the role query does not know which series are active now; ask for a day")

// notInRoles is the error of what only the role all does.
func notInRoles(text string) error {
	return &api.Error{Kind: "not_implemented", Status: http.StatusNotImplemented, Err: errors.New(text)}
}

// queryRole answers queries from the bucket and from the processes that hold what is not there yet.
type queryRole struct {
	n        *node
	c        config.Config
	engine   *Engine
	progress *progress.Log
	remote   *remote.Source
}

func openQuery(ctx context.Context, n *node) (_ role, err error) {
	if err := n.useDisk(); err != nil {
		return nil, err
	}
	if _, err := n.topic(); err != nil {
		return nil, err
	}
	q := &queryRole{n: n, c: *n.config}
	defer func() {
		if err != nil {
			err = errors.Join(err, q.close())
		}
	}()
	// Rows come to ingesters without a word to this process, so nothing says when an answer is no longer right.
	q.c.Answers = "off"
	o, err := q.options()
	if err != nil {
		return nil, err
	}
	e := &Engine{o: o, changes: changes.New(nil), resultChanges: &n.rowChanges}
	q.engine = e
	changed := e.rulesChanged
	n.tenants.changed.Store(&changed)
	e.lost = newLost(&e.o)
	if e.catalog, err = n.catalogue(ctx); err != nil {
		return nil, err
	}
	if q.progress, err = progress.Open(ctx, progress.Options{
		Connection: n.config.Kafka.Connection(), Epochs: n.epochs, Bucket: n.bucket, Catalog: e.catalog, Logger: n.log,
	}); err != nil {
		return nil, err
	}
	e.elsewhere.lost = q.progress.Lost
	e.deletions = deletions.New(deletions.Options{
		Connection: n.config.Kafka.Connection(), Epoch: q.progress.Writes, GivenUp: q.progress.GivenUp, Bucket: n.bucket, Catalog: e.catalog, Filters: lineFilter, Version: n.config.Kafka.JournalVersion, Most: q.c.Head.Deletion.Deletions, Registerer: n.registry,
	})
	if q.remote, err = peers.Open(&q.c.Roles, q.progress, e.deletions.Hiding, n.registry); err != nil {
		return nil, err
	}
	e.elsewhere.settled = q.progress.Settled(q.remote, n.config.Roles.ShipEvery, e.now, e.resultChanges)
	e.families = families.OpenReader(ctx, families.ReaderOptions{Bucket: n.bucket, Limits: q.c.Head.Metadata, Registerer: n.registry, Logger: n.log})
	e.usage = openUsage(e)
	err = e.openSources(n.seed, memoryOf(n.config), func(*ram.Cache) read.Source { return q.remote })
	if err != nil {
		return nil, err
	}
	e.runUsage()
	return q, nil
}

// options returns the options of an engine that only reads.
func (q *queryRole) options() (EngineOptions, error) {
	n, c := q.n, &q.c
	apart := []string{n.dataDir}
	if n.where.Kind == location.Folder {
		apart = append(apart, n.where.Dir)
	}
	cached, err := ssdOptions(c, n.fs, apart...)
	if err != nil {
		return EngineOptions{}, err
	}
	shared, err := memcachedOptions(&c.Memcached)
	if err != nil {
		return EngineOptions{}, err
	}
	rules, err := retention.Compile(c.RetentionRules, c.Retention)
	if err != nil {
		return EngineOptions{}, fmt.Errorf("%w: retention-rules: %w", model.ErrInvalid, err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "shale"
	}
	rollups, err := n.servers.rollups(c, n.log)
	if err != nil {
		return EngineOptions{}, err
	}
	return EngineOptions{
		Rollups: rollups, Summaries: summaries(c),
		FS: n.fs, DataDir: n.dataDir, Bucket: n.bucket, CoalesceGap: c.Requests.Gap, Node: host, MemoryBytes: c.MemoryBytes,
		Write: c.Write, Head: c.Head, SSD: cached, Memcached: shared, Results: c.Results, Retention: rules, QueryTimeout: c.Query.Timeout,
		VictoriaLogs: c.VictoriaLogs, LineRules: c.EveryTenant().Of(model.DefaultTenant).Lines,
		Tenants: n.tenants, Prices: c.Usage, ReadPrices: readPrices(c), Disk: new(disk.Disk), Registerer: n.registry, Logger: n.log,
	}, nil
}

// ready is [role.ready]. Kafka or an ingester that does not answer makes queries fail that need it, and no
// others.
func (q *queryRole) ready() error { return nil }

// mount is [role.mount].
func (q *queryRole) mount(mux api.Mux) error {
	n := q.n
	mux = peers.Strong(mux)
	shared := n.servers.mountProm(q.c, q.engine, mux, n.registry, n.log)
	n.servers.http.stopPatterns = func() {}
	if err := n.servers.mountLogsAndGraphite(q.c, q.engine, nil, shared, mux, n.registry, n.log); err != nil {
		return err
	}
	n.open.Store(q.engine)
	return nil
}

// quiesce is [role.quiesce].
func (q *queryRole) quiesce() error {
	q.engine.accounts.recorder.Close()
	return nil
}

// close is [role.close].
func (q *queryRole) close() (err error) {
	if q.engine != nil {
		err = q.engine.release()
	}
	if q.engine != nil && q.engine.families != nil {
		q.engine.families.Close()
	}
	if q.remote != nil {
		q.remote.Close()
	}
	if q.progress != nil {
		q.progress.Close()
	}
	return err
}
