package app

import (
	"context"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/pressure"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
	"github.com/shaledb/shale/internal/store/retention"
	"github.com/shaledb/shale/internal/store/topics"
)

// compactRole merges the blocks of the bucket, drops expired and deleted rows, and collects garbage.
type compactRole struct {
	compactor *compact.Compactor
	expiry    *expiry
}

func openCompact(ctx context.Context, n *node) (role, error) {
	c := n.config
	rules, err := retention.Compile(c.RetentionRules, c.Retention)
	if err != nil {
		return nil, fmt.Errorf("%w: retention-rules: %w", model.ErrInvalid, err)
	}
	if err := n.useDisk(); err != nil {
		return nil, err
	}
	cat, err := n.catalogue(ctx)
	if err != nil {
		return nil, err
	}
	current := func() *retention.Rules {
		if own := n.tenants.retention(); own != nil {
			return own
		}
		return rules
	}
	policies, err := n.servers.rollups(c, n.log)
	if err != nil {
		return nil, err
	}
	r := &compactRole{}
	r.compactor, err = compact.New(compact.Options{
		Catalog: cat, Bucket: n.bucket, FS: n.fs, Dir: n.fs.PathJoin(n.dataDir, "compact"), Seed: n.seed,
		Retention: current, Rollups: func() *compact.Rollups { return rollupsBy(policies, summaries(c)) }, MemoryBytes: memoryOf(c).compaction, Limits: c.Compact, Plain: plain(c), Workers: pressure.Processors(),
		Room:       func(bytes int64) (func(), error) { return n.disk.Reserve(2 * bytes) },
		Garbage:    catalog.CollectOptions{Grace: c.Query.Timeout + time.Minute, Holds: heldElsewhere(cat, n.givenUp())},
		Registerer: n.registry, Logger: n.log,
	})
	if err != nil {
		return nil, err
	}
	r.expiry = startExpiry(cat, r.compactor, current, EngineOptions{QueryTimeout: c.Query.Timeout, Logger: n.log})
	r.compactor.Start()
	return r, nil
}

// plain reports whether blocks and rollups have to be such that programs of before journal-version 4 read
// them.
func plain(c *config.Config) bool { return c.Kafka.JournalVersion < topics.VersionRollups }

// heldElsewhere reports whether any process may still ship rows that a deletion hides, or read its orders:
// partitions that stand still do, however old it is, and so do those of the topic before.
func heldElsewhere(c *catalog.Catalog, givenUp func(epoch uint64) bool) func(*catalog.Deletion) bool {
	return func(d *catalog.Deletion) bool {
		return time.Now().UnixNano()-d.Committed < int64(foreignDeletion) || !c.Passed(d, givenUp)
	}
}

// ready is [role.ready]. Nothing waits for merges.
func (r *compactRole) ready() error { return nil }

// mount is [role.mount].
func (r *compactRole) mount(api.Mux) error { return nil }

// quiesce is [role.quiesce].
func (r *compactRole) quiesce() error { return nil }

// close is [role.close]. A merge that runs is given up.
func (r *compactRole) close() error {
	r.compactor.Close()
	r.expiry.close()
	return nil
}
