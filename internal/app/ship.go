package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/head"
)

// shipper takes the head's blocks to the bucket and then to the catalogue. The head calls it for one ship at
// a time.
type shipper struct {
	fs      vfs.FS
	bucket  bucket.Bucket
	catalog *catalog.Catalog
	wrote   func(bytes int64) // to the bucket, which may lie in the data folder
	// fresh is told of each block that was uploaded, with its file.
	fresh func(ctx context.Context, b *catalog.Block, file io.ReaderAt)
	// covered is up to where this process knows the head's journal to be shipped.
	covered uint64
	// uploaded says when the objects of blocks were written that are in no ship yet.
	uploaded map[string]time.Time
}

// uploadKept is how long an object that a failed ship has left is used by the next one. It is far below the
// age at which the catalogue collects it.
const uploadKept = 30 * time.Minute

// Ship uploads the blocks and commits them at once. The content of a block determines its id, so a repeated
// Ship overwrites the same object.
func (s *shipper) Ship(ctx context.Context, ship *head.Ship) error {
	next := catalog.Ship{Covered: []catalog.Coverage{{
		Node: ship.Node, Epoch: ship.Epoch, From: s.covered + 1, To: max(s.covered, ship.Covered), Appended: ship.Flushed,
	}}}
	blocks := make(map[string]*head.Block, len(ship.Blocks))
	for i := range ship.Blocks {
		entry := entryOf(&ship.Blocks[i])
		next.Blocks, blocks[entry.ID] = append(next.Blocks, entry), &ship.Blocks[i]
	}
	err := s.catalog.Ship(ctx, next, func(ctx context.Context, id string) error { return s.upload(ctx, id, blocks[id]) })
	covered := s.catalog.Covered(ship.Node, ship.Epoch).To
	if errors.Is(err, catalog.ErrStale) && covered < s.covered {
		// The record of a ship was lost, and an operator has accepted that. The next try goes on from there.
		s.covered = covered
	}
	if err != nil {
		return err
	}
	for id := range blocks {
		delete(s.uploaded, id)
	}
	s.covered = covered
	return nil
}

// entryOf returns what the catalogue keeps of a block.
func entryOf(b *head.Block) catalog.Block {
	m := &b.Meta
	entry := catalog.Block{
		ID:   catalog.BlockID(m.Node, m.Epoch, m.Signal, catalog.DefaultGroup, m.Range, m.SeqLo, m.SeqHi, uint32(b.Cut)),
		Node: m.Node, Signal: m.Signal, Range: m.Range, Epoch: m.Epoch, SeqLo: m.SeqLo, SeqHi: m.SeqHi,
		KeyMin: b.KeyMin, KeyMax: b.KeyMax, Series: m.Series, Samples: m.Samples, Lines: m.Text, LineBytes: m.TextBytes,
		Bytes: b.Size, Created: m.Created,
	}
	for _, t := range m.Tenants {
		entry.Tenants = append(entry.Tenants, t.Name)
	}
	return entry
}

// upload writes the object of a block, unless a ship that failed has written it a short time ago.
func (s *shipper) upload(ctx context.Context, id string, b *head.Block) error {
	if time.Since(s.uploaded[id]) < uploadKept {
		return nil
	}
	f, err := s.fs.Open(b.File)
	if err != nil {
		return fmt.Errorf("%w: block %s: %v", model.ErrTransient, b.File, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	s.wrote(b.Size)
	if err := s.bucket.Put(ctx, catalog.ObjectName(id), io.NewSectionReader(f, 0, b.Size), b.Size); err != nil {
		return err
	}
	s.uploaded[id] = time.Now()
	entry := entryOf(b)
	s.fresh(ctx, &entry, f)
	return nil
}
