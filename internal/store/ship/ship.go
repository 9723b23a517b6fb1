package ship

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

// Options configure a Shipper.
type Options struct {
	FS      vfs.FS
	Bucket  bucket.Bucket
	Catalog *catalog.Catalog
	// Wrote is told of bytes that go to the bucket, which may lie in the data folder; nil: it is not told.
	Wrote func(bytes int64)
	// Fresh is told of each block that was uploaded, with its file; nil: it is not told.
	Fresh func(ctx context.Context, b *catalog.Block, file io.ReaderAt)

	// InBucket makes a batch count as shipped once the bucket has all of its rows, so that the head's folder
	// may be lost. Otherwise rows in parts of the folder count too.
	InBucket bool
	// Life tells heads apart that take the same batches of a journal one after the other. They may divide the
	// rows into blocks in other ways, and other blocks need other ids. Empty: the folder outlives the process.
	Life string
}

// Shipper takes blocks to the bucket. The head calls it for one ship at a time.
type Shipper struct {
	o Options
	// covered is up to where this process knows the head's journal to be shipped.
	covered uint64
	// uploaded says when the objects of blocks were written that are in no ship yet.
	uploaded map[string]time.Time
}

// New returns a Shipper for a journal of which nothing is shipped: see [Shipper.Resume].
func New(o Options) *Shipper {
	if o.Wrote == nil {
		o.Wrote = func(int64) {}
	}
	if o.Fresh == nil {
		o.Fresh = func(context.Context, *catalog.Block, io.ReaderAt) {}
	}
	return &Shipper{o: o, uploaded: map[string]time.Time{}}
}

// Resume says up to where the journal is shipped. It is called before the first ship.
func (s *Shipper) Resume(covered uint64) { s.covered = covered }

// Covered returns up to where this process knows the journal to be shipped.
func (s *Shipper) Covered() uint64 { return s.covered }

// uploadKept is how long an object that a failed ship has left is used by the next one. It is far below the
// age at which the catalogue collects it.
const uploadKept = 30 * time.Minute

// Ship uploads the blocks and commits them at once. The content of a block determines its id, so a repeated
// Ship overwrites the same object.
func (s *Shipper) Ship(ctx context.Context, ship *head.Ship) error {
	to, appended := max(s.covered, ship.Covered), ship.Flushed
	if s.o.InBucket && ship.Rest {
		to, appended = s.covered, 0
	}
	next := catalog.Ship{Covered: []catalog.Coverage{{Node: ship.Node, Epoch: ship.Epoch, From: s.covered + 1, To: to, Appended: appended}}}
	blocks := make(map[string]*head.Block, len(ship.Blocks))
	for i := range ship.Blocks {
		entry := s.entryOf(&ship.Blocks[i])
		next.Blocks, blocks[entry.ID] = append(next.Blocks, entry), &ship.Blocks[i]
	}
	err := s.o.Catalog.Ship(ctx, next, func(ctx context.Context, id string) error { return s.upload(ctx, id, blocks[id]) })
	covered := s.o.Catalog.Covered(ship.Node, ship.Epoch).To
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
func (s *Shipper) entryOf(b *head.Block) catalog.Block {
	m := &b.Meta
	maker := m.Node
	if s.o.Life != "" {
		maker += "/" + s.o.Life
	}
	entry := catalog.Block{
		ID:   catalog.BlockID(maker, m.Epoch, m.Signal, catalog.DefaultGroup, m.Range, m.SeqLo, m.SeqHi, uint32(b.Cut)),
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
func (s *Shipper) upload(ctx context.Context, id string, b *head.Block) error {
	if time.Since(s.uploaded[id]) < uploadKept {
		return nil
	}
	f, err := s.o.FS.Open(b.File)
	if err != nil {
		return fmt.Errorf("%w: block %s: %v", model.ErrTransient, b.File, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	s.o.Wrote(b.Size)
	if err := s.o.Bucket.Put(ctx, catalog.ObjectName(id), io.NewSectionReader(f, 0, b.Size), b.Size); err != nil {
		return err
	}
	s.uploaded[id] = time.Now()
	entry := s.entryOf(b)
	s.o.Fresh(ctx, &entry, f)
	return nil
}
