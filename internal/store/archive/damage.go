package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// maxReported bounds the memory of the names of damaged blocks.
const maxReported = 10_000

// damage reports each damaged block once, however many queries fail because of it.
type damage struct {
	log    *slog.Logger
	blocks prometheus.Counter

	mu       sync.Mutex
	reported map[string]bool
}

func newDamage(o Options) *damage {
	d := &damage{log: o.Logger, reported: make(map[string]bool)}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.blocks = promauto.With(o.Registerer).NewCounter(prometheus.CounterOpts{
		Name: "shale_archive_damaged_blocks_total",
		Help: "Blocks of the bucket that are missing, truncated or corrupt, each counted when a query first fails because of it."})
	return d
}

// named adds the name of a block to an error of reading it, and reports a damaged block. What is invalid for
// package part or the bucket is damage here: the request was checked before, so the block is not what its
// record says, or was written by a later version. The client can do nothing about it.
func (d *damage) named(b *catalog.Block, err error) error {
	if errors.Is(err, model.ErrInvalid) {
		err = fmt.Errorf("%w: %v", model.ErrCorrupt, err)
	}
	if errors.Is(err, model.ErrCorrupt) && d.first(b.ID) {
		d.blocks.Inc()
		d.log.Error("a block is damaged: queries of its tenants and times fail until it is repaired",
			"block", catalog.ObjectName(b.ID), "record", b.Record, "err", err,
			"remedy", "docs/operations.md, Damaged objects in the bucket")
	}
	return fmt.Errorf("block %s: %w", b.ID, err)
}

// tree notes that the tree of names of a block is damaged, which is not needed to find them.
func (d *damage) tree(b *catalog.Block, err error) {
	if d.first("tree of " + b.ID) {
		d.log.Warn("the tree of names of a block is damaged: queries of Graphite look through its names instead", "block", catalog.ObjectName(b.ID), "err", err)
	}
}

// first notes a block and reports whether it was unknown.
func (d *damage) first(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reported[id] {
		return false
	}
	if len(d.reported) >= maxReported {
		clear(d.reported)
	}
	d.reported[id] = true
	return true
}

// ofBlock gives an error of the bucket the class that it has for a block. A live block has an object of the
// size that its record says, so an object that is missing or too short is damage, not a mistake of the
// client.
func ofBlock(err error) error {
	for _, passes := range []error{model.ErrTransient, model.ErrClosed, model.ErrCorrupt, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, passes) {
			return err
		}
	}
	return fmt.Errorf("%w: the object is missing, truncated or unreadable: %v", model.ErrCorrupt, err)
}
