package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

func TestQueryPool(t *testing.T) {
	pool := &QueryPool{MaxBytes: 800} // 700 for queries of more than 12
	a, b := &Quota{MaxBytes: 600, Pool: pool}, &Quota{Pool: pool}
	if err := a.TakeBytes(500); err != nil {
		t.Fatal(err)
	}
	if err := b.TakeBytes(201); !errors.Is(err, ErrTransient) || !b.Refused(fmt.Errorf("while it reads: %w", err)) || a.Refused(err) {
		t.Errorf("more than all may hold: %v", err)
	}
	if err := b.TakeBytes(200); err != nil {
		t.Error(err)
	}
	if err := (&Quota{Pool: pool}).TakeBytes(12); err != nil {
		t.Errorf("a light query: %v", err)
	}
	if err := a.TakeBytes(-20); err != nil {
		t.Error(err)
	}
	if err := a.TakeBytes(121); err == nil || errors.Is(err, ErrTransient) || a.Refused(err) {
		t.Errorf("more than one may hold, when the pool has no room either: %v", err)
	}
	a.Release()
	if got := pool.Used(); got != 212 {
		t.Errorf("%d bytes are used, want 212", got)
	}
	if err := b.TakeBytes(488); err != nil {
		t.Error(err)
	}
	b.Release()
	b.Release()
	if got := pool.Used(); got != 12 {
		t.Errorf("%d bytes are used at the end, want 12", got)
	}
}

// TestTakeSpare: what a query could do without has a share of its own, leaves the query a quarter of what it
// may hold and all queries half, and is given back whole.
func TestTakeSpare(t *testing.T) {
	pool := &QueryPool{MaxBytes: 10_000}
	q := &Quota{MaxBytes: 800, Pool: pool}
	if !q.TakeSpare(100, 8) || q.TakeSpare(1, 8) {
		t.Error("an eighth is not an eighth")
	}
	if !q.TakeSpare(100, 4) || q.TakeSpare(1, 4) {
		t.Error("a quarter is not a quarter")
	}
	q.GiveSpare(200)
	if err := q.TakeBytes(550); err != nil {
		t.Fatal(err)
	}
	if q.TakeSpare(51, 4) || !q.TakeSpare(50, 4) {
		t.Error("the query has no quarter left")
	}
	q.GiveSpare(50)
	other := &Quota{Pool: pool}
	if err := other.TakeBytes(4_420); err != nil {
		t.Fatal(err)
	}
	if q.TakeSpare(31, 4) || !q.TakeSpare(30, 4) {
		t.Error("all queries together hold more than half")
	}
	q.GiveSpare(30)
	if err := q.TakeBytes(250); err != nil {
		t.Errorf("what was given back is missing: %v", err)
	}
}

// TestSpareInReservation: a query that runs from its beginning may prefetch with the memory that is reserved
// for it, however full the pool is.
func TestSpareInReservation(t *testing.T) {
	pool := &QueryPool{MaxBytes: 800}
	q, other := &Quota{Pool: pool, MaxBytes: 600}, &Quota{Pool: pool}
	if err := other.TakeBytes(600); err != nil {
		t.Fatal(err)
	}
	full := q.TakeBytes(200)
	if full == nil {
		t.Fatal("the pool is not full")
	}
	other.Release()
	q, err := pool.Await(t.Context(), q, full)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.TakeBytes(100); err != nil {
		t.Fatal(err)
	}
	if !q.TakeSpare(100, 4) || pool.Used() != 500 {
		t.Errorf("no spare memory within a reservation; %d bytes are used", pool.Used())
	}
	if err := q.TakeBytes(300); err != nil {
		t.Error(err)
	}
	if q.TakeSpare(1, 4) {
		t.Error("spare memory beyond the reservation in a pool that is more than half full")
	}
}

// TestGrains: however many goroutines charge a query, its charges are exact and within its limit. The pool
// counts them and at most four grains more.
func TestGrains(t *testing.T) {
	const limit = 8 << 20
	const grain = 64 << 10
	pool := &QueryPool{MaxBytes: 1 << 30, Grain: grain}
	q := &Quota{MaxBytes: limit, Pool: pool}
	var wait sync.WaitGroup
	for g := range uint64(4) {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(g, 1))
			mine := int64(0)
			for range 20_000 {
				n := r.Int64N(1 << (1 + r.IntN(20)))
				if mine >= n && r.IntN(2) == 0 {
					n = -n
				}
				if err := q.TakeBytes(n); err == nil {
					mine += n
				} else if !errors.Is(err, ErrLimit) || n < 0 {
					t.Errorf("a charge of %d: %v", n, err)
				}
				if got := pool.Used(); got > limit {
					t.Errorf("the pool counts %d bytes, the query may have %d", got, limit)
				}
			}
			if mine > 100 {
				_ = q.TakeBytes(-(mine - 100))
			} else {
				_ = q.TakeBytes(100 - mine)
			}
		})
	}
	wait.Wait()
	if got := q.Charged().bytes; got != 400 {
		t.Errorf("%d bytes are charged, want 400", got)
	}
	if got := pool.Used(); got < 400 || got > 400+4*grain {
		t.Errorf("the pool counts %d bytes for 400", got)
	}
	if err := q.TakeBytes(limit - 400); err != nil {
		t.Errorf("a charge up to the limit: %v", err)
	}
	if q.TakeBytes(1) == nil {
		t.Error("a charge beyond the limit")
	}
	q.Release()
	if got := pool.Used(); got != 0 {
		t.Errorf("the pool counts %d bytes at the end", got)
	}
}

// TestGrainsOfAFullPool: the last bytes of a pool can be charged.
func TestGrainsOfAFullPool(t *testing.T) {
	const grain = 32 << 10
	pool := &QueryPool{MaxBytes: 64 << 20, Grain: grain}
	a, b := &Quota{Pool: pool}, &Quota{Pool: pool}
	if err := errors.Join(a.TakeBytes(pool.allHeavy()-2<<20), b.TakeBytes(2<<20-grain)); err != nil {
		t.Fatal(err)
	}
	left := pool.allHeavy() - pool.Used()
	if err := b.TakeBytes(left); err != nil {
		t.Errorf("%d bytes are left: %v", left, err)
	}
}

func BenchmarkTakeBytes(b *testing.B) {
	q := &Quota{MaxBytes: 1 << 30, Pool: &QueryPool{MaxBytes: 1 << 30, Grain: 64 << 10}}
	for b.Loop() {
		if err := errors.Join(q.TakeSeries(1, 200), q.TakeSamples(1)); err != nil {
			_ = q.TakeBytes(-q.Charged().bytes)
		}
	}
}
