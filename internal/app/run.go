package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/shaledb/shale/internal/app/buckets"
	"github.com/shaledb/shale/internal/app/disk"
	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/meter"
	"github.com/shaledb/shale/internal/bucket/provider"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/pressure"
	"github.com/shaledb/shale/internal/store/retention"
)

// Options build a process.
type Options struct {
	Config config.Config
	Logger *slog.Logger
	// FS holds the data folder and the bucket; nil: the file system of the machine.
	FS vfs.FS
	// WrapBucket returns what the engine uses in place of the bucket; nil: the bucket itself.
	WrapBucket func(bucket.Bucket) bucket.Bucket
}

// Run serves until the context ends, and then stops gracefully: it closes the listeners, makes received data
// durable, flushes it and closes the files.
func Run(ctx context.Context, o Options) (err error) {
	c, log := o.Config, o.Logger
	pressure.Spare()
	defer runtime.KeepAlive(boundHeap(c.MemoryBytes, outsideHeap(&c)))
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := refuseOpenDoors(&c); err != nil {
		return err
	}
	guard, stopGuard, err := newGuard(ctx, &c, registry, log)
	if err != nil {
		return err
	}
	defer stopGuard()
	certificates, stopCerts, err := openCerts(ctx, &c.TLS, registry, log)
	if err != nil {
		return err
	}
	defer stopCerts()

	tenants, err := openTenants(ctx, &c, registry, log)
	if err != nil {
		return err
	}
	defer tenants.close()

	var ready readiness
	ready.set(errors.New(starting(&c)))
	var open atomic.Pointer[Engine]
	s, err := listen(c, doorkeepers{guard, certificates}, registry, log, ready.get, func() error {
		if e := open.Load(); e != nil {
			return e.Writable()
		}
		return nil
	}, &open)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if !c.Has(config.RoleAll) {
		return runRoles(ctx, &node{o: &o, config: &c, registry: registry, log: log, tenants: tenants, servers: s, open: &open}, &ready)
	}

	began := time.Now()
	engine, d, err := engineOptions(&o, registry)
	if err != nil {
		return err
	}
	engine.Tenants = tenants
	engine.Prices, engine.ReadPrices = c.Usage, readPrices(&c)
	defer d.Close()
	if engine.Rollups, err = s.rollups(&c, log); err != nil {
		return err
	}
	engine.Summaries = summaries(&c)
	e, err := OpenEngine(ctx, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := s.mount(c, e, registry, log); err != nil {
		return err
	}
	open.Store(e)
	ready.set(nil)
	log.Info("ready", append([]any{"after", time.Since(began).Round(time.Millisecond), "http", s.http.Addr(), "tls", certificates != nil}, s.graphiteAddrs()...)...)

	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	ready.set(errStopping)
	log.Info("stopping")
	e.accounts.recorder.Close()
	err = errors.Join(err, s.drain())
	if c.Roles.ShipAtStop.On() {
		err = errors.Join(err, shipAtStop(e, log))
	}
	return err
}

// shipAtStop takes all rows to the bucket. No request runs.
func shipAtStop(e *Engine, log *slog.Logger) error {
	began := time.Now()
	if err := e.Ship(); err != nil {
		return fmt.Errorf("ship-at-stop: rows of this data folder are not in the bucket: %w", err)
	}
	log.Info("shipped all rows", "after", time.Since(began).Round(time.Millisecond))
	return nil
}

// greatestBallast is the ballast of 1 GiB of memory.
const greatestBallast = 64 << 20

// boundHeap makes the garbage collector keep to a memory budget, of which some is outside its heap. It
// returns a ballast that must stay alive.
//
// The collector runs whenever the heap has doubled. The heap of a server that has just started is small, so
// the collector would run every few megabytes. The ballast counts as a part of the heap, which leaves at
// least as many bytes for garbage. No code touches it, so it takes no memory. A larger one would not help: a
// heap of that size is seldom collected.
func boundHeap(memory, outside int64) (ballast *strings.Builder) {
	// A slice from make would be cleared, and so touched, if a collection before it had freed memory.
	// The memory of a builder is never cleared.
	ballast = new(strings.Builder)
	ballast.Grow(int(min(memory/16, greatestBallast)))
	// The collector does not see memory outside its heap.
	debug.SetMemoryLimit(memory - outside + int64(ballast.Cap()))
	return ballast
}

// openBucket opens the bucket of the settings. check refuses a store that does not keep the contract.
func openBucket(o *Options, fs vfs.FS, registry *prometheus.Registry) (b bucket.Bucket, where location.Location, check func(context.Context) error, err error) {
	if where, err = o.Config.BucketLocation(); err != nil {
		return nil, where, nil, fmt.Errorf("%w: bucket: %w", model.ErrInvalid, err)
	}
	if b, _, err = provider.Open(fs, where); err != nil {
		return nil, where, nil, err
	}
	if o.WrapBucket != nil {
		b = o.WrapBucket(b)
	}
	check = buckets.NewCheck(b, where, registry, o.Logger).Run
	return buckets.Scheduled(meter.New(b, registry), string(where.Kind), o.Config.Requests, registry), where, check, nil
}

// disk returns the file system, and the path of the data folder.
func (o *Options) disk() (vfs.FS, string, error) {
	fs := o.FS
	if fs == nil {
		fs = vfs.Default
	}
	dataDir, err := filepath.Abs(o.Config.DataDir)
	if err != nil {
		return nil, "", fmt.Errorf("%w: data folder %s: %v", model.ErrInvalid, o.Config.DataDir, err)
	}
	return fs, dataDir, nil
}

func engineOptions(o *Options, registry *prometheus.Registry) (EngineOptions, *disk.Disk, error) {
	c := &o.Config
	fs, dataDir, err := o.disk()
	if err != nil {
		return EngineOptions{}, nil, err
	}
	rules, err := retention.Compile(c.RetentionRules, c.Retention)
	if err != nil {
		return EngineOptions{}, nil, fmt.Errorf("%w: retention-rules: %w", model.ErrInvalid, err)
	}
	if err := os.MkdirAll(dataDir, 0o755); err != nil {
		return EngineOptions{}, nil, fmt.Errorf("%w: data folder: %v", model.ErrInvalid, err)
	}
	b, where, check, err := openBucket(o, fs, registry)
	if err != nil {
		return EngineOptions{}, nil, err
	}
	node, err := os.Hostname()
	if err != nil {
		node = "shale"
	}
	apart := []string{dataDir}
	if where.Kind == location.Folder {
		apart = append(apart, where.Dir)
	}
	cached, err := ssdOptions(c, fs, apart...)
	if err != nil {
		return EngineOptions{}, nil, err
	}
	shared, err := memcachedOptions(&c.Memcached)
	if err != nil {
		return EngineOptions{}, nil, err
	}
	d := disk.Watch(fs, dataDir, c.DiskBytes, registry)
	limits := c.Write
	limits.MaxAge, limits.AgeSetting = c.OldestAge()
	return EngineOptions{
		FS: fs, DataDir: dataDir, Bucket: b, CoalesceGap: c.Requests.Gap, Node: node,
		MemoryBytes: c.MemoryBytes, CarbonRules: c.Carbon.Any(), Replicas: c.HA.On(), Write: limits, Head: c.Head, Windows: c.Windows, Compact: c.Compact, Plain: plain(c),
		SSD: cached, Memcached: shared, Results: c.Results, Retention: rules, QueryTimeout: c.Query.Timeout,
		VictoriaLogs: c.VictoriaLogs, LineRules: c.EveryTenant().Of(model.DefaultTenant).Lines,
		Disk: d, BucketApart: where.Kind != location.Folder || !liesIn(where.Dir, dataDir), Registerer: registry, Logger: o.Logger,
		CheckBucket: check,
	}, d, nil
}
