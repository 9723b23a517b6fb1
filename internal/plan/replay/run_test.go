package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/shaledb/shale/internal/plan/evict"
	"github.com/shaledb/shale/internal/plan/trace"
)

func ignore(int) {}

// keys makes a trace of reads, one a second, each by a query of its own.
func keys(sizes []uint32, order ...uint32) *trace.Trace {
	t := &trace.Trace{Name: "test", Sizes: sizes, Scale: 1}
	for i, k := range order {
		t.Requests = append(t.Requests, trace.Request{At: int64(i) * 1000, Key: k, Query: uint32(i), First: true})
	}
	return t
}

func mustRun(t *testing.T, tr *trace.Trace, c Case) Counts {
	t.Helper()
	counts, err := Run(t.Context(), tr, c, NextRequests(tr), ignore)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// TestByHand has traces whose hits and evictions can be counted on paper: room for two values of three.
func TestByHand(t *testing.T) {
	sizes := []uint32{10, 10, 10}
	tr := keys(sizes, 0, 1, 0, 2, 0, 1, 2, 0)
	for _, c := range []struct {
		policy                 string
		hits, gets, out, churn int64
	}{
		// 0m 1m 0h 2m(-1, unread) 0h 1m(-2, unread) 2m(-0) 0m(-1, unread)
		{evict.LRU, 2, 6, 4, 3},
		// 0m 1m 0h 2m(not kept) 0h 1h 2m(not kept: no later request) 0h
		{evict.Optimum, 4, 4, 0, 0},
	} {
		got := mustRun(t, tr, Case{Policy: c.policy, Bytes: 20, Shared: true})
		if got.Hits != c.hits || got.Gets != c.gets || got.Evicted != c.out || got.Unread != c.churn {
			t.Errorf("%s: %d hits, %d requests, %d evicted, %d of them unread, expected %d, %d, %d, %d",
				c.policy, got.Hits, got.Gets, got.Evicted, got.Unread, c.hits, c.gets, c.out, c.churn)
		}
	}
}

// TestSharing: reads of a value that is on its way are requests of their own, unless fetches are shared.
func TestSharing(t *testing.T) {
	tr := keys([]uint32{10}, 0, 0, 0, 0, 0)
	if got := mustRun(t, tr, Case{Policy: evict.LRU, Bytes: 20, DelayMs: 2500}); got.Gets != 3 || got.Waits != 0 || got.Hits != 2 {
		t.Errorf("alone: %+v", got)
	}
	if got := mustRun(t, tr, Case{Policy: evict.LRU, Bytes: 20, DelayMs: 2500, Shared: true}); got.Gets != 1 || got.Waits != 2 || got.Hits != 2 {
		t.Errorf("shared: %+v", got)
	}
}

// TestWarmUp: requests before the end of the warm-up fill the cache and are not counted.
func TestWarmUp(t *testing.T) {
	tr := keys([]uint32{10, 10}, 0, 1, 0, 1)
	tr.WarmUp = 2000
	if got := mustRun(t, tr, Case{Policy: evict.LRU, Bytes: 20}); got.Reads != 2 || got.Hits != 2 || got.Gets != 0 || got.Written != 0 {
		t.Errorf("%+v", got)
	}
}

// random makes a trace of popular keys, one-time scans and writes.
func random(seed uint64, equal bool) *trace.Trace {
	rng := rand.New(rand.NewPCG(seed, 1))
	t := &trace.Trace{Name: "random", Scale: 1, WarmUp: 3_000_000}
	zipf := rand.NewZipf(rng, 1.1, 3, 1999)
	for range 6000 {
		size := uint32(1 + rng.IntN(1000))
		if equal {
			size = 100
		}
		t.Sizes = append(t.Sizes, size)
	}
	scan := uint32(2000)
	for i := range 20_000 {
		r := trace.Request{At: int64(i) * 500, Key: uint32(zipf.Uint64()), Query: uint32(i / 3), First: true}
		if rng.IntN(5) == 0 {
			r.Key = scan
			scan = 2000 + (scan-1999)%4000
			r.Write = rng.IntN(3) == 0
		}
		t.Requests = append(t.Requests, r)
	}
	return t
}

// TestAllPolicies: every read is a hit, a wait or a request to the bucket; the same trace gives the same
// counts; no policy exceeds the bound; and with values of one size the optimum is the best.
func TestAllPolicies(t *testing.T) {
	for _, equal := range []bool{true, false} {
		tr := random(1, equal)
		next := NextRequests(tr)
		for _, capacity := range []int64{1000, 20_000, 100_000, 1 << 40} {
			bound := Bound(tr, next, []int64{capacity})[0]
			best := mustRun(t, tr, Case{Policy: evict.Optimum, Bytes: capacity, Shared: true}).Hits
			for _, policy := range evict.Names() {
				t.Run(fmt.Sprintf("%s %d %t", policy, capacity, equal), func(t *testing.T) {
					c := Case{Policy: policy, Bytes: capacity, Queue: 0.1, Shared: true}
					got := mustRun(t, tr, c)
					if got.Hits+got.Waits+got.Gets != got.Reads || got.FirstHits > got.First || got.Unread > got.Evicted {
						t.Errorf("counts do not add up: %+v", got)
					}
					if got.Hits > bound {
						t.Errorf("%d hits, more than the bound of %d", got.Hits, bound)
					}
					if equal && got.Hits > best {
						t.Errorf("%d hits, more than the optimum of %d", got.Hits, best)
					}
					if capacity == 1<<40 && (got.Hits < best || got.Evicted > 0) {
						t.Errorf("with room for all: %d hits of %d, %d evicted", got.Hits, best, got.Evicted)
					}
					if again := mustRun(t, tr, c); policy != evict.TinyLFU && again != got {
						t.Errorf("a second run differs: %+v, %+v", got, again)
					}
				})
			}
		}
	}
}

// TestGrid: cases that run at one time have the counts of cases that run alone.
func TestGrid(t *testing.T) {
	tr := random(2, false)
	var cases []Case
	for _, policy := range []string{evict.LRU, evict.Shale, evict.Optimum} {
		cases = append(cases, Case{Policy: policy, Bytes: 30_000, Queue: 0.1, Shared: true})
	}
	got, err := Grid(t.Context(), tr, cases, 3, ignore)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if want := mustRun(t, tr, c); got[i] != want {
			t.Errorf("%s: %+v, alone %+v", c.Policy, got[i], want)
		}
	}
}
