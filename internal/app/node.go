package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/app/disk"
	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/results"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
	"github.com/shaledb/shale/internal/store/topics"
)

// node is what the roles of one process share.
type node struct {
	o        *Options
	config   *config.Config
	registry *prometheus.Registry
	log      *slog.Logger
	tenants  *tenantBook
	servers  *servers
	// open is the engine that the pages of administration ask; a role with one stores it there.
	open *atomic.Pointer[Engine]

	// start sets the rest.

	fs      vfs.FS
	dataDir string
	bucket  bucket.Bucket
	where   location.Location
	seed    model.KeySeed
	// epochs are the topics that carry writes, or have; the last one takes them.
	epochs []topics.Epoch
	lock   io.Closer  // of the data folder; nil: no role uses it
	disk   *disk.Disk // bounds the data folder, if a role uses it
	// blocks is the catalogue, once a role has asked for it.
	blocks *catalog.Catalog
	// rowChanges are those of the rows in the bucket, if a role queries them.
	rowChanges results.Changes
}

// start checks the bucket and reads what it says about the installation.
func (n *node) start(ctx context.Context) (err error) {
	if n.fs, n.dataDir, err = n.o.disk(); err != nil {
		return err
	}
	var check func(context.Context) error
	if n.bucket, n.where, check, err = openBucket(n.o, n.fs, n.registry); err != nil {
		return err
	}
	if err := check(ctx); err != nil {
		return err
	}
	if n.seed, err = catalog.EnsureSeed(ctx, n.bucket); err != nil {
		return err
	}
	if n.epochs, err = topics.List(ctx, n.bucket); err != nil {
		return err
	}
	return nil
}

// topic returns the epoch that takes writes. kafka.topic is the name of its topic, or that of one before it:
// a process that starts again need not know of a topic that has followed meanwhile.
func (n *node) topic() (*topics.Epoch, error) {
	e := topics.Latest(n.epochs)
	switch want := n.config.Kafka.Topic; {
	case e == nil:
		return nil, fmt.Errorf("%w: the bucket records no topic; shale kafka create makes one, and shale kafka adopt records one", model.ErrInvalid)
	case e.Topic != want && slices.ContainsFunc(n.epochs, func(e topics.Epoch) bool { return e.Topic == want }):
		n.log.Warn("a newer topic has replaced the one in kafka.topic; set kafka.topic to the newest", "kafka.topic", want, "topic", e.Topic, "epoch", e.Number)
	case e.Topic != want:
		return nil, fmt.Errorf("%w: kafka.topic: the bucket records topic %s as epoch %d, not %s; shale kafka adopt begins to use another one",
			model.ErrInvalid, e.Topic, e.Number, want)
	}
	return e, nil
}

// givenUp returns what says whether an operator has given up what was not shipped of an epoch. It asks the
// bucket about epochs after which none is known.
func (n *node) givenUp() func(epoch uint64) bool {
	var mu sync.Mutex
	known := n.epochs
	return func(epoch uint64) bool {
		mu.Lock()
		defer mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), givenUpTime)
		defer cancel()
		for epoch >= uint64(len(known)) {
			next, err := topics.Next(ctx, n.bucket, uint64(len(known)))
			if err != nil || next == nil {
				return false
			}
			known = append(known[:len(known):len(known)], *next)
		}
		return epoch > 0 && known[epoch].BeforeLost
	}
}

// givenUpTime bounds the questions about later epochs.
const givenUpTime = 10 * time.Second

// useDisk takes the data folder, for roles that keep files.
func (n *node) useDisk() (err error) {
	if n.lock == nil {
		if n.lock, err = lockFolder(n.fs, n.dataDir); err == nil {
			n.disk = disk.Watch(n.fs, n.dataDir, n.config.DiskBytes, n.registry)
		}
	}
	return err
}

// catalogue returns the catalogue of the bucket, which the roles of the process share.
func (n *node) catalogue(ctx context.Context) (_ *catalog.Catalog, err error) {
	if n.blocks == nil {
		n.blocks, err = catalog.Open(ctx, n.bucket, catalog.Options{
			Filters: lineFilter, Registerer: n.registry, Logger: n.log, Changes: &n.rowChanges, TellOwn: true,
			Describe: func(ctx context.Context, id string, size int64) (catalog.Block, error) {
				return compact.Describe(ctx, n.bucket, id, size)
			},
		})
	}
	return n.blocks, err
}

// metricsUnlessQuery is for what the role query has too, with the same metrics.
func (n *node) metricsUnlessQuery() prometheus.Registerer {
	if n.config.Has(config.RoleQuery) {
		return nil
	}
	return n.registry
}

func (n *node) close() (err error) {
	if n.lock != nil {
		n.disk.Close()
		err = n.lock.Close()
		n.lock = nil
	}
	return err
}
