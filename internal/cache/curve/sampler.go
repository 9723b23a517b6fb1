package curve

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/cache/ram"
)

const (
	// keyBytes is about the memory of a key: in each simulated cache, in the sample, and as a recent touch.
	keyBytes         = 900
	leastKeys        = 512
	mostKeys         = 16 << 10
	recentPerKey     = 4
	buffered         = 4096                // touches that wait to be simulated
	diskRecordBytes  = 80                  // of a record on disk besides the value
	ramOverhead      = ram.EntryBytes + 48 // of a value in memory, with the name of its object
	busiest, idle    = 0.008, 0.002
	tickEvery        = time.Second
	saveEvery        = 5 * time.Minute
	usualStoredShare = 0.3 // of the bytes in memory, for pages whose stored size is not known yet
)

// Options build a Sampler.
type Options struct {
	// MemoryBytes bounds the memory of all simulations.
	MemoryBytes int64
	Sizes       Sizes
	// Actual returns what the tiers have done since the start; nil: it is not known.
	Actual func() Actual
	// FS and Dir say where curves are kept; nil: they are not.
	FS  vfs.FS
	Dir string

	Now        func() int64 // Unix nanoseconds
	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Sampler simulates caches of several sizes on a sample of the keys. It is a [ledger.Watcher].
type Sampler struct {
	o     Options
	limit atomic.Uint64 // keys with a hash below are in the sample

	buffer struct {
		sync.Mutex
		touches []ledger.Touch
		dropped int64
	}

	mu     sync.Mutex
	most   int // keys
	caches *caches
	ids    map[uint64]uint32
	free   []uint32
	hashes []uint64 // by key, as the rest
	ram    []uint32
	disk   []uint32
	used   []bool
	recent recent

	hours   []Hour
	now     Hour
	before  Actual
	busy    float64 // share of a processor, of which later seconds count more
	ticks   int
	saved   int64
	minute  int64
	touches prometheus.Counter

	stop chan struct{}
	done sync.WaitGroup
}

var _ ledger.Watcher = (*Sampler)(nil)

// New returns a sampler that knows the curves of earlier hours, if there are any in the folder. Damaged files
// count as missing.
func New(o Options) (*Sampler, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	most := int(min(max(o.MemoryBytes/keyBytes, leastKeys), mostKeys))
	s := &Sampler{
		o: o, most: most, ids: make(map[uint64]uint32, most), stop: make(chan struct{}),
		hashes: make([]uint64, most), ram: make([]uint32, most), disk: make([]uint32, most), used: make([]bool, most),
		recent: recent{touches: make([]seen, 0, most*recentPerKey)},
	}
	for i := most; i > 0; i-- {
		s.free = append(s.free, uint32(i-1))
	}
	s.limit.Store(math.MaxUint64)
	if err := s.load(); err != nil {
		return nil, err
	}
	s.saved = o.Now()
	s.begin(o.Now())
	s.meter()
	return s, nil
}

// share returns the share of the keys that are in the sample.
func (s *Sampler) share() float64 { return float64(s.limit.Load()) / (1 << 64) }

// spread makes the sample independent of how tiers use the bits of hashes. It uses the upper 48 bits, which
// is what a simulated tier on disk knows of values that have left its queue.
func spread(key uint64) uint64 {
	key >>= 16
	key ^= key >> 31
	key *= 0x7fb5d329728ea185
	key ^= key >> 27
	return key * 0x81dadef4bc2dd44d
}

func (s *Sampler) sampled(key uint64) bool { return spread(key) <= s.limit.Load() }

// Wants is [ledger.Watcher.Wants].
func (s *Sampler) Wants(key uint64, first bool) bool { return first && s.sampled(key) }

// Note is [ledger.Watcher.Note].
func (s *Sampler) Note(t ledger.Touch) {
	s.buffer.Lock()
	defer s.buffer.Unlock()
	if len(s.buffer.touches) >= buffered {
		s.buffer.dropped++
		return
	}
	s.buffer.touches = append(s.buffer.touches, t)
}

// Start simulates in a goroutine of its own until Close.
func (s *Sampler) Start() {
	s.done.Go(func() {
		tick := time.NewTicker(tickEvery)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
				s.tick()
			}
		}
	})
}

// Close ends what Start began, and keeps the curves for the next start.
func (s *Sampler) Close() {
	close(s.stop)
	s.done.Wait()
	s.Process()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.save()
}

// tick simulates what has come, and keeps to its share of a processor.
func (s *Sampler) tick() {
	began := time.Now()
	s.Process()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ticks++
	s.busy += (time.Since(began).Seconds()/tickEvery.Seconds() - s.busy) / float64(min(s.ticks, 60))
	switch {
	case s.busy > busiest:
		s.shrink()
		s.busy /= 2
	case s.busy < idle && s.ticks%3600 == 0 && len(s.ids) < s.most/4:
		s.grow()
	}
	if now := s.o.Now(); now-s.saved >= int64(saveEvery) {
		s.saved = now
		s.save()
	}
}

// Process simulates the touches that have been noted.
func (s *Sampler) Process() {
	s.buffer.Lock()
	touches := s.buffer.touches
	s.buffer.touches = make([]ledger.Touch, 0, min(len(touches)*2, buffered))
	s.buffer.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(s.o.Now())
	for i := range touches {
		s.apply(&touches[i])
	}
	s.touches.Add(float64(len(touches)))
}

// apply simulates a touch.
func (s *Sampler) apply(t *ledger.Touch) {
	if !s.sampled(t.Key) {
		return
	}
	id, ok := s.ids[t.Key]
	if !ok {
		if id, ok = s.add(t); !ok {
			return
		}
	}
	s.recent.note(t, s.ram[id], s.disk[id])
	s.caches.touch(id, t, s.ram[id], s.disk[id])
}

// add gives a key a number. When none is left, keys that no cache has any more give theirs up, and if these
// are few, the sample becomes smaller.
func (s *Sampler) add(t *ledger.Touch) (uint32, bool) {
	if len(s.free) == 0 {
		s.sweep()
		for len(s.free) < s.most/8 {
			s.shrink()
		}
		if !s.sampled(t.Key) {
			return 0, false
		}
	}
	id := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.ids[t.Key] = id
	stored, bytes := t.Stored, t.Bytes
	if stored == 0 {
		stored = uint32(float64(bytes) * usualStoredShare)
	}
	if bytes == 0 {
		bytes = uint32(min(float64(stored)/usualStoredShare, 1<<30))
	}
	s.hashes[id], s.ram[id], s.disk[id] = t.Key, bytes+ramOverhead, stored+diskRecordBytes
	return id, true
}

// sweep takes the numbers of keys that no cache has.
func (s *Sampler) sweep() {
	for key, id := range s.ids {
		if !s.caches.has(id) {
			delete(s.ids, key)
			s.free = append(s.free, id)
		}
	}
}

// shrink halves the sample: half of its keys are forgotten, and the caches become half as large.
func (s *Sampler) shrink() {
	s.limit.Store(s.limit.Load() / 2)
	for key, id := range s.ids {
		if !s.sampled(key) {
			s.caches.forget(id)
			delete(s.ids, key)
			s.free = append(s.free, id)
		}
	}
	s.resize(0.5)
}

// grow doubles the sample. The caches do not have the keys that are new in it, and learn them as the queries
// come.
func (s *Sampler) grow() {
	if s.limit.Load() > math.MaxUint64/2 {
		return
	}
	s.limit.Store(s.limit.Load()*2 + 1)
	s.resize(2)
}

// resize makes the caches those of the current share, so many times the one before.
func (s *Sampler) resize(times float64) {
	s.carry(s.caches.points(), times)
	s.caches.resize(s.o.Sizes, s.share(), s.sampled)
	s.caches.reset()
	s.now.Share = s.share()
}

// mustCaches makes the caches. The names of their policies are right.
func (s *Sampler) mustCaches() *caches {
	m, err := newCaches(s.o.Sizes, s.share(), s.ram, s.disk, s.hashes)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return m
}
