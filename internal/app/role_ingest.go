package app

import (
	"context"
	"fmt"
	"math/bits"
	"net/http"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/peer"
	"github.com/shaledb/shale/internal/app/deletions"
	"github.com/shaledb/shale/internal/app/ingester"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/cache/ram"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/ingest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/pressure"
	"github.com/shaledb/shale/internal/read/remote/wire"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/known"
	"github.com/shaledb/shale/internal/store/topics"
)

const (
	// ingestFolder is the folder in the data folder for the heads of partitions.
	ingestFolder = "ingest"
	// linger is how long shipped rows stay readable beyond the time of a query: other processes see the bucket
	// as it was some seconds ago.
	linger = 30 * time.Second
	// peersEnd is how long a stop waits for the requests of other processes.
	peersEnd = 5 * time.Second
)

// ingestRole takes partitions of Kafka to the bucket, and answers other processes for what is not there yet.
type ingestRole struct {
	n       *node
	catalog *catalog.Catalog
	pages   *ram.Cache
	epochs  *ingester.Epochs
	pool    *model.QueryPool
	ending  context.Context // once it ends, requests of other processes do
	end     context.CancelFunc
	warned  struct { // of too little memory
		sync.Mutex
		shares int64
	}
}

func openIngest(ctx context.Context, n *node) (_ role, err error) {
	c := n.config
	epoch, err := n.topic()
	if err != nil {
		return nil, err
	}
	partitions, err := c.Roles.PartitionList()
	if err == nil {
		err = ingest.CheckPartitions(epoch, partitions)
	}
	if err != nil {
		return nil, fmt.Errorf("kafka.partitions: %w", err)
	}
	if err := n.useDisk(); err != nil {
		return nil, err
	}
	r := &ingestRole{n: n}
	if r.catalog, err = n.catalogue(ctx); err != nil {
		return nil, err
	}
	if err := r.clean(); err != nil {
		return nil, err
	}
	split := memoryOf(c)
	if r.pages, err = ram.New(ram.Options{MaxBytes: split.pages, Registerer: n.metricsUnlessQuery()}); err != nil {
		return nil, err
	}
	r.pool = &model.QueryPool{MaxBytes: split.queries, Name: "requests of other processes"}
	r.ending, r.end = context.WithCancel(context.Background())
	r.epochs, err = ingester.OpenEpochs(ctx, ingester.EpochsOptions{
		Config: c, Bucket: n.bucket, Catalog: r.catalog, Known: n.epochs, Partitions: partitions, Of: r.options(split),
		Limits: func(tenant string) (most int64, rated bool) {
			l := n.tenants.head(tenant)
			return l.Series, l.NewSeries > 0 || c.Head.NewSeries > 0 || !n.tenants.groups(tenant).None()
		},
		Groups: n.tenants.groups,
		Active: func(ctx context.Context, p *ingest.Partition, tenant string, s model.Signal, emit func(model.Labels)) error {
			return activeSeries(ctx, p.Head(), ingester.Source(p, r.pages), tenant, s, emit)
		},
		Registerer: n.registry, Logger: n.log,
	})
	if err != nil {
		r.end()
		return nil, err
	}
	buffered := func() (n int64) {
		for _, owner := range r.epochs.Lanes() {
			owner.Each(func(_ int32, p *ingest.Partition, _ ingest.State, _ error) {
				if p != nil {
					n += p.Head().Buffered()
				}
			})
		}
		return n
	}
	n.disk.Buffered.Store(&buffered)
	return r, nil
}

// clean deletes the folders of partitions that an earlier process has left. Their rows are in the bucket or
// in Kafka.
func (r *ingestRole) clean() error {
	fs, dir := r.n.fs, r.n.fs.PathJoin(r.n.dataDir, ingestFolder)
	err := fs.RemoveAll(dir)
	if err == nil {
		err = fs.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", model.ErrTransient, dir, err)
	}
	return nil
}

// headFolderOf returns the name of the folder of a partition's head.
func headFolderOf(epoch uint64, partition int32) string {
	return fmt.Sprintf("%d-%s", epoch, topics.Node(partition))
}

// options returns what makes the options of partitions, each of which has an equal share of the memory.
func (r *ingestRole) options(split budget) func(*topics.Epoch, int32, int) ingest.Options {
	n, c := r.n, r.n.config
	apart := n.where.Kind != location.Folder || !liesIn(n.where.Dir, n.dataDir)
	connection := c.Kafka.Connection()
	connection.Log = n.log
	return func(epoch *topics.Epoch, partition int32, shares int) ingest.Options {
		partitions := int64(shares)
		r.warnOfShares(partitions)
		return ingest.Options{
			Connection: connection,
			// One response is being read while another one waits.
			ReadBytes:    int32(min(max(split.journal/partitions/2, 64<<10), 4<<20)),
			Ships:        ships(c),
			Version:      c.Kafka.JournalVersion,
			LabelRefresh: c.Roles.LabelRefresh, ShipEvery: c.Roles.ShipEvery, Bucket: n.bucket, Catalog: r.catalog, Room: n.disk.Room, Logger: n.log,
			Head: head.Options{
				FS: n.fs, Dir: n.fs.PathJoin(n.dataDir, ingestFolder, headFolderOf(epoch.Number, partition)), Seed: n.seed,
				KnownBytes: split.known / partitions, RowBytes: split.rows / partitions, LabelBytes: split.labels / partitions,
				Limits: c.Head, Windows: c.Windows, MaxFuture: c.Write.MaxFuture, Linger: c.Query.Timeout + linger,
				Space: n.disk, BucketApart: apart, WindowBytes: n.disk.Part((1 << 30) / partitions), Workers: pressure.Processors(),
				Deleter: deletions.Shipper{Bucket: n.bucket, Catalog: r.catalog}, Filters: lineFilter,
				Registerer: n.registry, Logger: n.log.With("topic", epoch.Topic, "partition", partition),
			},
		}
	}
}

// mostPartitions returns of how many partitions an ingester can have the heads so that each keeps to its
// share of the memory: a known set takes known.LeastBytes, however small its share is. It returns 0 for a
// process that has no partitions. Where they move, the number of shares is a power of two.
func mostPartitions(c *config.Config) int64 {
	if c.Has(config.RoleAll) || !c.Has(config.RoleIngest) {
		return 0
	}
	most := memoryOf(c).known / known.LeastBytes
	if c.Roles.Partitions == "" && most > 0 {
		most = 1 << (bits.Len64(uint64(most)) - 1)
	}
	return most
}

// leastMemory returns the memory from which so many shares are large enough for a head each.
func leastMemory(c *config.Config, shares int64) int64 {
	const unit = 1 << 20
	least := known.LeastBytes * shares
	units := float64(least) / float64(memoryOf(c).known) * float64(c.MemoryBytes) / unit
	return (int64(units) + 1) * unit
}

// warnOfShares logs that the memory is too small for so many shares, once for each greater number.
func (r *ingestRole) warnOfShares(shares int64) {
	c := r.n.config
	least := leastMemory(c, shares)
	if c.MemoryBytes >= least {
		return
	}
	r.warned.Lock()
	defer r.warned.Unlock()
	if shares <= r.warned.shares {
		return
	}
	r.warned.shares = shares
	r.n.log.Warn("the memory is too small for so many partitions: their heads may take more than their shares; raise memory, or share the partitions among more ingesters",
		"shares", shares, "memory", c.MemoryBytes, "memory_needed", least)
}

// ships returns the setting ship as partitions have it.
func ships(c *config.Config) ingest.Ships {
	if c.Roles.Ship == "on" {
		return ingest.ShipsAlways
	}
	return ingest.Ships(c.Roles.Ship)
}

// ready is [role.ready].
func (r *ingestRole) ready() error {
	return r.epochs.Ready()
}

// mount is [role.mount].
func (r *ingestRole) mount(mux api.Mux) error {
	c := r.n.config
	h := peer.New(peer.Options{
		Zone: c.Roles.Zone, Partitions: r.partitions, MaxTime: c.Query.Timeout, Registerer: r.n.registry,
		Quota: func(tenant string) *model.Quota {
			return &model.Quota{Tenant: tenant, MaxBytes: r.n.tenants.queries(tenant).MaxBytes, Pool: r.pool}
		},
	})
	bounded := http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		ctx, cancel := context.WithCancel(hr.Context())
		defer cancel()
		defer context.AfterFunc(r.ending, cancel)()
		// The server's own bound on reading requests would end long ones.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(c.Query.Timeout + time.Minute))
		h.ServeHTTP(w, hr.WithContext(ctx))
	})
	for _, path := range []string{wire.PathState, wire.PathSelect, wire.PathLabels, wire.PathNames, wire.PathText, wire.PathPage} {
		mux.Handle(path, bounded)
	}
	mux.Handle(wire.PathTail, http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		ctx, cancel := context.WithCancel(hr.Context())
		defer cancel()
		defer context.AfterFunc(r.ending, cancel)()
		h.ServeHTTP(w, hr.WithContext(ctx))
	}))
	return nil
}

// partitions returns the heads that other processes may ask.
func (r *ingestRole) partitions() (all []peer.Partition) {
	for _, owner := range r.epochs.Lanes() {
		all = append(all, ingester.Held(owner, r.pages)...)
	}
	return all
}

// quiesce is [role.quiesce].
// Partitions of a group go to other processes first, while this one still answers queries.
func (r *ingestRole) quiesce() error {
	r.epochs.Leave()
	time.AfterFunc(peersEnd, r.end)
	return nil
}

// close is [role.close]. It ships all rows. What cannot be shipped in time, the next owner reads again.
func (r *ingestRole) close() error {
	r.epochs.Leave()
	r.end()
	r.epochs.Close()
	return nil
}
