package ship

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
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
	// Life tells heads apart that take the same batches of a journal, at the same time or one after the other.
	// They may divide the rows into blocks in other ways, and other blocks need other ids. Once another life has
	// shipped the journal, this one ships no more. Empty: the folder outlives the process, and is its only
	// holder.
	Life string
	// Leaders returns the number of the leader that had taken a record, as [catalog.Coverage] has it; nil: there
	// are no leaders.
	Leaders func(seq uint64) uint64
	// Appended returns a time in Unix nanoseconds: all batches that were appended before it have numbers up to
	// this one. Nil or 0: it is not known. It is for journals that are read InBucket.
	Appended func(seq uint64) int64
	// Stale is told once why a life ships no more; nil: it is not told.
	Stale func(error)
}

// Shipper takes blocks to the bucket. The head calls it for one ship at a time.
type Shipper struct {
	o Options
	// uploaded says when the objects of blocks were written that are in no ship yet.
	uploaded map[string]time.Time

	mu sync.Mutex
	// at is how far this process knows the head's journal to be shipped.
	at catalog.Progress
	// stale is why a life ships no more.
	stale error
}

// New returns a Shipper for a journal of which nothing is shipped: see [Shipper.Resume].
func New(o Options) *Shipper {
	if o.Wrote == nil {
		o.Wrote = func(int64) {}
	}
	if o.Fresh == nil {
		o.Fresh = func(context.Context, *catalog.Block, io.ReaderAt) {}
	}
	if o.Leaders == nil {
		o.Leaders = func(uint64) uint64 { return 0 }
	}
	if o.Appended == nil {
		o.Appended = func(uint64) int64 { return 0 }
	}
	if o.Stale == nil {
		o.Stale = func(error) {}
	}
	return &Shipper{o: o, uploaded: map[string]time.Time{}}
}

// Resume says how far the journal is shipped. It is called before the first ship.
func (s *Shipper) Resume(at catalog.Progress) { s.set(at, nil) }

// Covered returns up to where this process knows the journal to be shipped.
func (s *Shipper) Covered() uint64 {
	at, _ := s.state()
	return at.To
}

// Last returns the number of the last ship of the journal that this process knows to be its own, or to come
// before its own.
func (s *Shipper) Last() uint64 {
	at, _ := s.state()
	return at.Ship
}

func (s *Shipper) state() (catalog.Progress, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at, s.stale
}

func (s *Shipper) set(at catalog.Progress, stale error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.stale = at, stale
}

// uploadKept is how long an object that a failed ship has left is used by the next one. It is far below the
// age at which the catalogue collects it.
const uploadKept = 30 * time.Minute

// Ship uploads the blocks and commits them at once. The content of a block determines its id, so a repeated
// Ship overwrites the same object. After [catalog.ErrStale] a life ships no more.
func (s *Shipper) Ship(ctx context.Context, ship *head.Ship) error {
	at, stale := s.state()
	if stale != nil {
		return stale
	}
	to, appended := max(at.To, ship.Covered), ship.Flushed
	if s.o.InBucket {
		if ship.Rest {
			to = at.To
		}
		// Flushed is the time of a flush, long after that of the batches if the head reads late.
		appended = s.o.Appended(to)
	}
	next := catalog.Ship{
		Covered: []catalog.Coverage{{Node: ship.Node, Epoch: ship.Epoch, From: at.To + 1, To: to, Appended: appended}},
		Life:    s.o.Life, After: at.Ship,
	}
	next.Covered[0].Leaders = at.Leaders
	if to > at.To {
		next.Covered[0].Leaders = s.o.Leaders(to)
	}
	blocks := make(map[string]*head.Block, len(ship.Blocks))
	for i := range ship.Blocks {
		entry := s.entryOf(&ship.Blocks[i])
		next.Blocks, blocks[entry.ID] = append(next.Blocks, entry), &ship.Blocks[i]
	}
	reached, err := s.o.Catalog.Ship(ctx, next, func(ctx context.Context, id string) error { return s.upload(ctx, id, blocks[id]) })
	if errors.Is(err, catalog.ErrStale) {
		s.fell(at, ship, err)
	}
	if err != nil {
		return err
	}
	for id := range blocks {
		delete(s.uploaded, id)
	}
	s.set(reached[0], nil)
	return nil
}

// fell decides how to go on after a stale ship. If the record of a ship was lost, and an operator has
// accepted that, the journal of this machine goes on from where the catalogue is. A life never does: it
// cannot tell that from another life.
func (s *Shipper) fell(at catalog.Progress, ship *head.Ship, err error) {
	if s.o.Life != "" {
		s.set(at, err)
		s.o.Stale(err)
		return
	}
	if now := s.o.Catalog.Progress(ship.Node, ship.Epoch); now.To < at.To {
		s.set(now, nil)
	}
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

// Close records that no batch follows up to a sequence number, all of which are shipped but those that are
// given up. No later ship of the journal is accepted.
func (s *Shipper) Close(ctx context.Context, node string, epoch, to uint64, givenUp ...catalog.Skip) error {
	at, stale := s.state()
	if stale != nil || at.Closed {
		return stale
	}
	reached, err := s.o.Catalog.Ship(ctx, catalog.Ship{
		Covered: []catalog.Coverage{{Node: node, Epoch: epoch, From: at.To + 1, To: max(at.To, to), Closed: true}}, Skipped: givenUp, Life: s.o.Life, After: at.Ship,
	}, nil)
	if errors.Is(err, catalog.ErrStale) && s.o.Life != "" {
		s.set(at, err)
		s.o.Stale(err)
	}
	if err != nil {
		return err
	}
	s.set(reached[0], nil)
	return nil
}
