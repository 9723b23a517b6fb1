package whatif

import (
	"fmt"
	"hash/maphash"

	"github.com/shaledb/shale/internal/memcache/slab"
)

// Config is what is known of a server before it is watched.
type Config struct {
	// Factors are the sizes to predict, in times the memory that the server has.
	Factors []float64
	// Memory is -m, in bytes.
	Memory int64
	// Table is the slab classes, and Pages are how many pages each has now, by its number.
	Table slab.Table
	Pages map[int]float64
	// CAS says whether items have a number for compare-and-swap, which takes 8 bytes.
	CAS bool
	// Empty says that the server has no items, and Evicted that it evicted some: only then a smaller memory has
	// items that are not known, or a larger one.
	Empty, Evicted bool
	Limits         Limits
	// Keys is how many keys are simulated at most.
	Keys int
}

// KeyBytes is what a key of the sample takes, with four sizes and the tables around it, at most.
const KeyBytes = 500

// maxConns bounds the connections of which the last line is kept. A server has 1,024 unless it was told so.
const maxConns = 1 << 17

// entry is a key of the sample.
type entry struct {
	hash uint64
	// size, class and chunk are of the item that the server had last; expires is when it expires, in seconds.
	bytes, chunk, expires int64
	class                 uint8
	// sizes is at how many sizes the item is there.
	sizes uint8
	// missed: a client looked for it in vain. It will store it.
	missed, live bool
}

// tally is what was counted at one size since the prediction began, for all keys.
type tally struct{ gets, hits, unknown float64 }

// Model is memcached at several sizes. It is not safe for concurrent use.
type Model struct {
	config    Config
	seed      maphash.Seed
	sizes     []*lru
	tallies   []tally
	threshold uint64
	rate      float64
	shares    *shares
	index     map[uint64]int32
	entries   []entry
	freed     []int32
	gone      []int32
	// pending has the last line of each connection, if it is a get, and asked their connections by the hash of
	// the key.
	pending map[int32]*pending
	asked   map[uint64]int32
	// chunks are the sizes of chunks, by class.
	chunks [256]int64
	// begun: requests count.
	begun bool

	// These count lines: read, left out by the server, and not understood.
	lines, skipped, wrong int64
	gets, hits, stores    int64
}

// New returns a model.
func New(c Config) (*Model, error) {
	if len(c.Factors) == 0 || c.Keys < 1 || c.Memory < 1 {
		return nil, fmt.Errorf("expected sizes, keys and memory, got %d, %d and %d", len(c.Factors), c.Keys, c.Memory)
	}
	m := &Model{config: c, seed: maphash.MakeSeed(), threshold: 1 << 63, rate: 1, shares: newShares(), index: map[uint64]int32{}, pending: map[int32]*pending{}, asked: map[uint64]int32{},
		tallies: make([]tally, len(c.Factors)),
	}
	for _, f := range c.Factors {
		s := newLRU(c.Limits, func(item int32) {
			if m.entries[item].sizes--; m.entries[item].sizes == 0 {
				m.gone = append(m.gone, item)
			}
		})
		s.shares = m.shares
		s.free = f * float64(c.Memory) / slab.Page
		for _, t := range c.Table {
			k := &s.classes[t.ID]
			k.page = float64(t.PerPage) * float64(t.Size)
			k.pages = f * c.Pages[t.ID]
			s.free -= k.pages
		}
		s.free = max(0, s.free)
		m.sizes = append(m.sizes, s)
	}
	for _, t := range c.Table {
		m.chunks[t.ID] = int64(t.Size)
	}
	return m, nil
}

// Begin begins the prediction: what came before only warmed the models.
func (m *Model) Begin() {
	m.Flush()
	m.begun = true
}

// Line takes a line of the log.
func (m *Model) Line(line []byte) {
	m.lines++
	e, err := Parse(line)
	if err != nil {
		m.wrong++
		return
	}
	switch e.Kind {
	case Skipped:
		m.skipped += e.Lines
	case Get:
		m.hold(&e)
	case Store, Delete:
		// Each store and delete looks for its key first, and the log has that like the get of a client.
		hash := m.hash(e.Key)
		if conn, ok := m.asked[hash]; ok && conn == e.Conn || ok && e.Kind == Delete {
			m.pending[conn].held = false
			delete(m.asked, hash)
		}
		if other, ok := m.asked[hash]; ok {
			m.release(other)
		}
		m.release(e.Conn)
		if e.Kind == Store {
			m.store(&e, hash)
		} else if i, ok := m.index[hash]; ok {
			for _, s := range m.sizes {
				s.remove(i)
			}
		}
	}
	m.drop()
}

// pending is a get that waits for the next line of its connection, which says whether a client sent it. No
// two of them have the same key, so that they come before what other connections do with it.
type pending struct {
	hash   uint64
	micros int64
	size   int64
	conn   int32
	key    int32 // length
	class  uint8
	found  bool
	held   bool
}

func (m *Model) hold(e *Event) {
	hash := m.hash(e.Key)
	m.release(e.Conn)
	if other, ok := m.asked[hash]; ok {
		m.release(other)
	}
	p := m.pending[e.Conn]
	if p == nil {
		if len(m.pending) >= maxConns {
			m.Flush()
		}
		p = &pending{}
		m.pending[e.Conn] = p
	}
	*p = pending{hash, e.Micros, e.Size, e.Conn, int32(keyLength(e.Key)), uint8(e.Class), e.Found, true}
	m.asked[hash] = e.Conn
}

func (m *Model) release(conn int32) {
	if p := m.pending[conn]; p != nil && p.held {
		p.held = false
		delete(m.asked, p.hash)
		m.get(p)
	}
}

// Flush ends the waiting for further lines.
func (m *Model) Flush() {
	for conn := range m.pending {
		m.release(conn)
	}
	clear(m.pending)
	m.drop()
}

func (m *Model) hash(key []byte) uint64 { return maphash.Bytes(m.seed, key) >> 1 }

// of returns the number of a key, if it is in the sample; fresh: it was not known.
func (m *Model) of(hash uint64) (i int32, fresh, sampled bool) {
	if hash >= m.threshold {
		return 0, false, false
	}
	if i, ok := m.index[hash]; ok {
		return i, false, true
	}
	for len(m.index) >= m.config.Keys && m.threshold > 1 {
		m.thin()
	}
	if hash >= m.threshold { // the key itself left the sample
		return 0, false, false
	}
	if n := len(m.freed); n > 0 {
		i, m.freed = m.freed[n-1], m.freed[:n-1]
	} else {
		i = int32(len(m.entries))
		m.entries = append(m.entries, entry{})
		for _, s := range m.sizes {
			s.grow(len(m.entries))
		}
	}
	m.entries[i] = entry{hash: hash, live: true}
	m.index[hash] = i
	return i, true, true
}

// thin lowers the threshold, so that an eighth of the keys leaves the sample.
func (m *Model) thin() {
	m.threshold = thinner(m.threshold)
	m.shares.shrink()
	m.rate = float64(m.threshold) / (1 << 63)
	for i := range m.entries {
		if e := &m.entries[i]; e.live && e.hash >= m.threshold {
			for _, s := range m.sizes {
				s.remove(int32(i))
			}
			m.forget(int32(i))
		}
	}
	for _, s := range m.sizes {
		s.rate = m.rate
	}
}

func (m *Model) forget(i int32) {
	e := &m.entries[i]
	delete(m.index, e.hash)
	*e = entry{}
	m.freed = append(m.freed, i)
}

// drop forgets keys that are in memory at no size, unless a client is about to store them.
func (m *Model) drop() {
	for _, i := range m.gone {
		if e := &m.entries[i]; e.live && e.sizes == 0 && !e.missed {
			m.forget(i)
		}
	}
	m.gone = m.gone[:0]
}

// get takes a request of a client.
func (m *Model) get(e *pending) {
	if m.begun {
		m.gets++
		if e.found {
			m.hits++
		}
	}
	var bytes, chunk int64
	if e.found {
		bytes, chunk = m.size(e.hash, e.class, int(e.key), int(e.size))
	}
	i, fresh, sampled := m.of(e.hash)
	if !sampled {
		return
	}
	k, now := &m.entries[i], e.micros/1_000_000
	if k.missed = !e.found; e.found {
		k.class, k.bytes, k.chunk = e.class, bytes, chunk
	}
	for at, s := range m.sizes {
		hit := s.get(i, now)
		// What is not known was stored before the watch. Where there is more memory, it would be there too.
		before := fresh && e.found && m.config.Factors[at] >= 1
		if m.begun {
			t := &m.tallies[at]
			t.gets += 1 / m.rate
			switch {
			case hit || before:
				t.hits += 1 / m.rate
			case fresh && s.evictions == 0 && m.hides(m.config.Factors[at]):
				t.unknown += 1 / m.rate
			}
		}
		if !hit && e.found {
			m.put(s, i, now)
			if before {
				s.get(i, now)
			}
		}
	}
	if !e.found && k.sizes == 0 {
		m.gone = append(m.gone, i)
	}
}

// hides reports whether a server of another size may have items that were stored before the watch, but that
// this one does not show.
func (m *Model) hides(factor float64) bool {
	return factor < 1 && !m.config.Empty || factor > 1 && m.config.Evicted
}

// store takes an item that a client stored. What it stores because it had not found it is not stored where it
// would have found it.
func (m *Model) store(e *Event, hash uint64) {
	m.stores++
	bytes, chunk := m.size(hash, uint8(e.Class), keyLength(e.Key), int(e.Size))
	i, _, sampled := m.of(hash)
	if !sampled {
		return
	}
	k, now := &m.entries[i], e.Micros/1_000_000
	k.expires = 0
	if e.Lives != 0 {
		k.expires = max(1, now+int64(e.Lives))
	}
	k.class, k.bytes, k.chunk = uint8(e.Class), bytes, chunk
	fill := k.missed
	k.missed = false
	for _, s := range m.sizes {
		if !fill || !s.has(i) {
			m.put(s, i, now)
		}
	}
	if k.sizes == 0 {
		m.gone = append(m.gone, i)
	}
}

// size returns what an item takes, and counts its key.
func (m *Model) size(hash uint64, class uint8, key, value int) (bytes, chunk int64) {
	bytes = int64(slab.ItemSize(key, value, 0, m.config.CAS))
	chunk = max(bytes, m.chunks[class]) // an item that is larger than a chunk takes several
	m.shares.count(hash, class, chunk)
	return bytes, chunk
}

func (m *Model) put(s *lru, i int32, now int64) {
	k := &m.entries[i]
	had := s.has(i)
	if !had {
		k.sizes++ // set calls left for an item that it replaces, or that finds no room
	}
	s.set(i, k.class, k.bytes, k.chunk, k.expires, now)
	switch has := s.has(i); {
	case had && has:
		k.sizes++
	case !had && !has:
		k.sizes--
	}
}
