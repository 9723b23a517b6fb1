package router

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/shaledb/shale/internal/memcache/hash"
)

// state is what a pool does with keys, until it is configured again.
type state struct {
	conf     Pool
	c        *poolCounters
	spread   *hash.Twemproxy
	backends []*backend
	ring     atomic.Pointer[hash.Ring] // nil: all servers are ejected
	now      func() time.Time

	// rebuild is when an ejected server comes back, in nanoseconds; 0: none is ejected.
	rebuild atomic.Int64
	failed  []atomic.Int32 // failures in a row
	mu      sync.Mutex
	retry   []int64 // when a server comes back; guarded by mu
}

func newState(conf Pool, c *poolCounters) (*state, error) {
	spread, err := conf.spread()
	if err != nil {
		return nil, err
	}
	s := &state{conf: conf, c: c, spread: spread, now: time.Now, failed: make([]atomic.Int32, len(conf.Servers)), retry: make([]int64, len(conf.Servers))}
	s.ring.Store(spread.Ring(nil))
	return s, nil
}

// pick returns the server of a key, or nil while all are ejected.
func (s *state) pick(key []byte) *backend {
	if at := s.rebuild.Load(); at != 0 && s.now().UnixNano() > at {
		s.mu.Lock()
		s.update()
		s.mu.Unlock()
	}
	r := s.ring.Load()
	if r == nil {
		return nil
	}
	return s.backends[r.Pick(key)]
}

var errEjected = syscall.ECONNREFUSED

// update makes the ring of the servers that are not ejected. The caller holds the lock.
func (s *state) update() {
	now, next := s.now().UnixNano(), int64(0)
	for _, at := range s.retry {
		if at > now && (next == 0 || at < next) {
			next = at
		}
	}
	s.ring.Store(s.spread.Ring(func(i int) bool { return s.retry[i] <= now }))
	s.rebuild.Store(next)
}

// failure notes that a connection to a server has failed. As in twemproxy, so many in a row eject it for a
// time.
func (s *state) failure(i int) {
	if !s.conf.Eject {
		return
	}
	if int(s.failed[i].Add(1)) < s.conf.FailureLimit {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[i].Store(0)
	now := s.now()
	if s.retry[i] > now.UnixNano() {
		return // a request that was under way when the server was ejected
	}
	s.retry[i] = now.Add(s.conf.RetryTimeout).UnixNano()
	s.backends[i].c.ejectedAt.Store(now.UnixMicro())
	s.c.ejects.Add(1)
	s.update()
}

// ok notes a response.
func (s *state) ok(i int) {
	if s.failed[i].Load() != 0 {
		s.failed[i].Store(0)
	}
}

// Moved returns the share of keys that another configuration of a pool puts on another server, of so many
// made-up keys.
func Moved(old, with Pool, keys int) (share float64, err error) {
	a, err := newState(old, nil)
	if err != nil {
		return 0, err
	}
	b, err := newState(with, nil)
	if err != nil {
		return 0, err
	}
	moved := 0
	key := make([]byte, 0, 32)
	for i := range keys {
		key = appendHex(append(key[:0], "key:"...), uint64(i)*0x9e3779b97f4a7c15)
		if old.Servers[a.ring.Load().Pick(key)].Addr != with.Servers[b.ring.Load().Pick(key)].Addr {
			moved++
		}
	}
	return float64(moved) / float64(keys), nil
}

func appendHex(b []byte, n uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[n>>shift&15])
	}
	return b
}
