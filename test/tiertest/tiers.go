package tiertest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache/memcached"
	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/memcache"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

// The names of the tiers. Small stands for a cache in memory that has room for few pages, so that the others
// are asked more often.
const (
	Small     = "small"
	SSD       = "ssd"
	Memcached = "memcached"
)

// Tiers makes caches for the stores of one test.
type Tiers struct {
	t       testing.TB
	names   []string
	servers []string
	made    atomic.Int64

	mu   sync.Mutex
	hits map[string]float64   // of ended runs, by tier
	last *prometheus.Registry // of the run that began last
}

// Start prepares the tiers of a text such as small+ssd+memcached. Memcached are three servers with extstore.
// An empty text stands for no tiers after memory.
func Start(t testing.TB, text string) *Tiers {
	t.Helper()
	all := &Tiers{t: t, hits: make(map[string]float64)}
	if text == "" {
		return all
	}
	all.names = strings.Split(text, "+")
	for _, name := range all.names {
		if name != Small && name != SSD && name != Memcached {
			t.Fatalf("%q is not a tier: expected %s, %s and %s with + between them", name, Small, SSD, Memcached)
		}
	}
	if slices.Contains(all.names, Memcached) {
		for range 3 {
			all.servers = append(all.servers, memcachetest.Start(t, memcachetest.Extstore(t.TempDir(), 64)...).Addr)
		}
	}
	t.Cleanup(all.expectHits)
	return all
}

// Set is the tiers of one store, which outlive its restarts.
type Set struct {
	all    *Tiers
	prefix string
}

// New returns the tiers of an empty store. Seeds and times of test stores are alike, so that their keys
// differ only by the prefix.
func (a *Tiers) New() *Set {
	return &Set{a, fmt.Sprint("store", a.made.Add(1))}
}

// Start begins a run of the store, and returns the registry of its metrics.
func (s *Set) Start() *prometheus.Registry {
	r := prometheus.NewRegistry()
	s.all.mu.Lock()
	before := s.all.last
	s.all.last = r
	s.all.mu.Unlock()
	if before != nil && len(s.all.names) > 0 {
		s.all.count(before)
	}
	return r
}

// Memory returns the memory of a store that would otherwise have that much. A fifth of it is for rows:
// a request of the tests of PromQL needs 1.6 MB there.
func (s *Set) Memory(usual int64) int64 {
	if slices.Contains(s.all.names, Small) {
		return 8 << 20
	}
	return usual
}

// SSD returns the options of the SSD on a disk, or nil. It takes pages of new blocks, since even the small
// memory has room for all pages of some tests, and then no page is wanted twice. With memcached, that takes
// them instead: otherwise the SSD would have all pages that memcached has, and memcached would never be
// asked.
func (s *Set) SSD(disk vfs.FS) *ssd.Options {
	if !slices.Contains(s.all.names, SSD) {
		return nil
	}
	limits := ssd.Limits{WritesPerDay: 1000, FreshPercent: 100}
	if len(s.all.servers) > 0 {
		limits.FreshPercent = 0
	}
	return &ssd.Options{FS: disk, Dir: "/ssd", MaxBytes: ssd.MinBytes, Limits: limits}
}

// Memcached returns the options of memcached, or nil. Tests wait for it longer than a server does, since
// their bucket may be in memory. It takes pages of new blocks.
func (s *Set) Memcached() *memcached.Options {
	if len(s.all.servers) == 0 {
		return nil
	}
	const wait = 50 * time.Millisecond
	return &memcached.Options{
		Client: memcache.Options{Servers: s.all.servers, MaxWait: wait, Bound: func() time.Duration { return wait }}, Prefix: s.prefix,
		Fresh: true,
	}
}

// count adds the hits of a run. The counters of a store that was closed can still be read.
func (a *Tiers) count(r *prometheus.Registry) {
	families, err := r.Gather()
	if err != nil {
		a.t.Error(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range families {
		if f.GetName() != "shale_cache_hits_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "tier" {
					a.hits[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
}

// expectHits fails the test if a tier was never asked for what it had: then the test would not have tested
// it. Where memory is large, only a restart makes a test ask the others, and not every test restarts.
func (a *Tiers) expectHits() {
	if !slices.Contains(a.names, Small) {
		return
	}
	a.mu.Lock()
	last := a.last
	a.mu.Unlock()
	if last == nil {
		return
	}
	a.count(last)
	a.t.Logf("hits of the tiers: %v", a.hits)
	for _, name := range a.names {
		if name != Small && a.hits[name] == 0 && !a.t.Failed() {
			a.t.Errorf("no page came from %s", name)
		}
	}
}
