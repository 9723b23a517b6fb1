package ssd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/admit"
	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/model"
)

// MinBytes is the least size of a tier.
const MinBytes = 64 << 20

// Limits are the settings of the tier.
type Limits struct {
	WritesPerDay int `name:"cache.ssd-writes-per-day" type:"count" default:"3" placeholder:"N" min:"1" help:"Most bytes that the SSD cache writes in a day, in multiples of its size. It protects the disk, whose endurance is given as drive writes per day. What is not written is read from the bucket."`
	FreshPercent int `name:"cache.ssd-fresh-percent" type:"count" default:"25" placeholder:"PERCENT" min:"0" max:"100" help:"Most bytes of new blocks that the SSD cache writes in a day before a query asks for them, in percent of its size. 0: none."`
}

// Options build a Store.
type Options struct {
	FS vfs.FS
	// Dir is the folder of the tier. It is created if it is missing, and belongs to one process.
	Dir string
	// MaxBytes bounds the files in the folder.
	MaxBytes int64
	Limits   Limits
	// IndexBytes bounds the memory for what is known of each record, and QueueBytes the memory for values
	// that wait: for a second query that wants them, or to be written.
	IndexBytes, QueueBytes int64
	// Mutable says that values of keys change. Boot names the start of the machine, or is empty if that is not
	// known. Both are explained in mutable.go.
	Mutable bool
	Boot    string

	// Account is told what enters and leaves, and what the disk does; nil: nothing is told.
	Account *ledger.Tier

	Now        func() time.Time // nil: time.Now
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

const (
	// largestSegment is the size of a segment of a large tier. A smaller tier has at least leastSegments.
	largestSegment = 64 << 20
	leastSegments  = 64
	// knownBytes is the memory of a record: about 24 bytes in the index, and 8 of a hash in the filter.
	knownBytes = 32
	// queueLength bounds the number of values that wait to be written.
	queueLength = 4096
	// tickEvery is the interval in which the tier looks after itself.
	tickEvery = 10 * time.Second
)

// Store is a [cache.Secondary] on a disk.
//
// One goroutine writes. Reads run in the goroutines of queries: they take a lock of the index for a moment,
// and wait for nothing but the disk.
type Store struct {
	o            Options
	segmentBytes int64
	maxEntries   int64
	maxQueued    int64 // bytes

	index  index
	filter *admit.Filter[offer]
	slots  []slot
	health health
	fresh  fresh
	m      *metrics

	gates   [gates]gate
	floor   atomic.Uint64 // all records of generations up to it were removed
	removed removed

	queue   chan write
	queued  atomic.Int64 // bytes in queue
	nextLog atomic.Int64 // when a damaged record may be logged, in nanoseconds

	stop chan struct{}
	done sync.WaitGroup

	flying
	// patience is after how long an operation of the disk counts as hung.
	patience time.Duration

	// The rest is of the goroutine that writes.

	lock       io.Closer
	generation uint64
	sealed     []int // slots with segments, the oldest first
	free       []int // slots without; those that have a file come first
	open       int   // the slot that is written to; -1: none
	end        int64 // of the last record in it
	footer     []located
	budget     budget
	key        []byte
	record     []byte
	nextSaved  time.Time
	cramped    bool // the file system has no room for more segments
}

// offer is a value with its key.
type offer struct {
	key   cache.Key
	value []byte
}

// write is a value that is to be written.
type write struct {
	offer
	hash  uint64
	query uint16
	stamp uint32 // of its gate when it was the value of its key
}

var _ cache.Secondary = (*Store)(nil)

// Open opens the tier of a folder, or creates it. A folder that cannot be used leaves the tier out until it
// can. Only options that make no sense are an error.
func Open(o Options) (*Store, error) {
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	s.start()
	s.done.Go(s.run)
	s.done.Go(s.watch)
	return s, nil
}

// newStore returns a Store that has not begun.
func newStore(o Options) (*Store, error) {
	if o.MaxBytes < MinBytes {
		return nil, fmt.Errorf("%w: SSD cache: %d bytes are too small: must be at least %d", model.ErrInvalid, o.MaxBytes, MinBytes)
	}
	if o.Limits.WritesPerDay < 1 {
		return nil, fmt.Errorf("%w: SSD cache: expected at least 1 drive write per day, got %d", model.ErrInvalid, o.Limits.WritesPerDay)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		o: o, segmentBytes: segmentSize(o.MaxBytes), maxEntries: max(o.IndexBytes/knownBytes, 1), maxQueued: o.QueueBytes / 4,
		queue: make(chan write, queueLength), stop: make(chan struct{}), open: -1, patience: hungAfter,
	}
	s.removed.writing = newTurn()
	// Snapshots have the room of one segment.
	s.slots = make([]slot, min(o.MaxBytes/s.segmentBytes-1, 1<<16))
	if o.Mutable {
		s.maxQueued = o.QueueBytes // values wait in the memory of the owner
	}
	s.filter = admit.New[offer](o.QueueBytes-s.maxQueued, int(s.maxEntries))
	s.budget = budget{daily: o.MaxBytes * int64(o.Limits.WritesPerDay), at: o.Now()}
	s.fresh.begin(o.MaxBytes/100*int64(o.Limits.FreshPercent), o.Now())
	s.m = newMetrics(s)
	s.health.begin(s)
	o.Account.Describe(func() ledger.State {
		return ledger.State{Bytes: s.index.bytes.Load(), LimitBytes: o.MaxBytes, Entries: s.index.entries.Load(), QueueBytes: s.queued.Load()}
	})
	return s, nil
}

// segmentSize returns the size of the segments of a tier: a power of two.
func segmentSize(maxBytes int64) int64 {
	size := int64(largestSegment)
	for size*leastSegments > maxBytes {
		size /= 2
	}
	return size
}

// largestValue bounds the values that are kept.
func (s *Store) largestValue() int { return int(min(s.segmentBytes/4, maxRecordBytes/2)) }

// Get is [cache.Secondary.Get].
func (s *Store) Get(_ context.Context, k cache.Key, by cache.Asker) cache.Found {
	value, ok := s.find(k, uint16(by.Query))
	if !ok {
		s.m.misses.Inc()
		return cache.Found{}
	}
	s.m.hits.Inc()
	return cache.Found{Value: value, From: cache.Disk}
}

// GetMany is [cache.Secondary.GetMany].
func (s *Store) GetMany(ctx context.Context, keys []cache.Key, by cache.Asker, found []cache.Found) {
	for i, k := range keys {
		found[i] = s.Get(ctx, k, by)
	}
}

func (s *Store) find(k cache.Key, query uint16) ([]byte, bool) {
	if keyBytes(k) > maxKeyBytes {
		return nil, false
	}
	hash := k.Hash()
	e, ok := s.index.use(hash, query)
	if ok {
		return s.read(k, hash, e)
	}
	if w, admitted := s.filter.Use(hash, query); admitted {
		s.enqueue(write{offer: w, hash: hash, query: query})
		return w.value, w.key == k
	}
	w, ok := s.filter.Peek(hash)
	return w.value, ok && w.key == k
}

// Has is [cache.Secondary.Has].
func (s *Store) Has(k cache.Key) bool {
	hash := k.Hash()
	if _, ok := s.index.get(hash); ok {
		return s.health.readable()
	}
	w, ok := s.filter.Peek(hash)
	return ok && w.key == k
}

// Offer is [cache.Secondary.Offer].
func (s *Store) Offer(k cache.Key, by cache.Asker, value []byte) {
	query := uint16(by.Query)
	switch {
	case !s.health.writable():
		s.m.refused(refusedOut)
		return
	case len(value) == 0 || len(value) > s.largestValue() || keyBytes(k) > maxKeyBytes:
		s.m.refused(refusedSize)
		return
	}
	hash := k.Hash()
	if _, ok := s.index.use(hash, query); ok {
		return // another query has brought it in the meantime
	}
	o := offer{k, value}
	if s.filter.Offer(hash, query, int64(len(value)+len(k.Object)), o) {
		s.enqueue(write{offer: o, hash: hash, query: query})
	}
}

// Use is [cache.Secondary.Use].
func (s *Store) Use(k cache.Key, by cache.Asker) {
	hash, query := k.Hash(), uint16(by.Query)
	if _, ok := s.index.use(hash, query); ok {
		return
	}
	if w, admitted := s.filter.Use(hash, query); admitted {
		s.enqueue(write{offer: w, hash: hash, query: query})
	}
}

// enqueue hands a value to the goroutine that writes, unless too much waits already.
func (s *Store) enqueue(w write) {
	n := int64(len(w.value))
	if s.queued.Add(n) <= s.maxQueued {
		select {
		case s.queue <- w:
			return
		default:
		}
	}
	s.queued.Add(-n)
	s.filter.Retry(w.hash, w.query)
	s.m.refused(refusedQueue)
}

// read returns the value of an entry, or false: the record is damaged, or was moved or overwritten since the
// entry was found.
func (s *Store) read(k cache.Key, hash uint64, e entry) ([]byte, bool) {
	if !s.health.readable() {
		return nil, false
	}
	from := &s.slots[e.slot]
	generation := from.generation.Load()
	f := from.acquire()
	if f == nil {
		return nil, false
	}
	defer f.release()
	b := make([]byte, e.bytes())
	begun := time.Now()
	end := s.reading(begun)
	err := readFull(f, b, int64(e.off))
	end.Add(-1)
	took := time.Since(begun)
	s.health.observe(took, err)
	s.o.Account.Took(took, int64(len(b)))
	var key, value []byte
	if err == nil {
		_, key, value, err = parseRecord(b, generation)
	}
	if err == nil {
		var wanted [maxKeyBytes]byte
		return value, bytes.Equal(key, appendKey(wanted[:0], k))
	}
	if from.generation.Load() == generation {
		s.damaged(hash, e, err)
	}
	return nil, false
}

// damaged removes an entry whose record cannot be read. An entry that was replaced in the meantime stays.
func (s *Store) damaged(hash uint64, e entry, err error) {
	if !s.drop(hash, e) {
		return
	}
	s.m.bad.Inc()
	now := s.o.Now().UnixNano()
	if next := s.nextLog.Load(); now >= next && s.nextLog.CompareAndSwap(next, now+int64(time.Minute)) {
		s.o.Logger.Warn("a record of the SSD cache cannot be read and is dropped; further ones of the next minute are only counted",
			"file", s.o.FS.PathJoin(s.o.Dir, segmentName(int(e.slot))), "offset", e.off, "err", err)
	}
}

// drop takes an entry out of the index, and reports whether it was there.
func (s *Store) drop(hash uint64, e entry) bool {
	g := s.gate(hash)
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := s.index.remove(hash, int(e.slot), e.off)
	if ok && s.o.Mutable {
		// The next process may be able to read it. It must not when the value was replaced.
		g.noted = s.removed.note(Removal{s.slots[e.slot].generation.Load(), hash, e.off})
	}
	return ok
}

// Close writes what waits to be written, and ends the tier. It does not wait for a disk that has hung.
func (s *Store) Close() error {
	close(s.stop)
	written := make(chan struct{})
	go func() {
		s.done.Wait()
		close(written)
	}()
	watch := time.NewTicker(s.patience / 4)
	defer watch.Stop()
	for {
		select {
		case <-written:
			return s.finish()
		case <-watch.C:
			if s.hangs(time.Now()) {
				return errHung
			}
		}
	}
}
