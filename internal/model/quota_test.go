package model

import (
	"errors"
	"testing"
)

func TestQueryPool(t *testing.T) {
	pool := &QueryPool{MaxBytes: 800} // 700 for queries of more than 12
	a, b := &Quota{MaxBytes: 600, Pool: pool}, &Quota{Pool: pool}
	if err := a.TakeBytes(500); err != nil {
		t.Fatal(err)
	}
	if err := b.TakeBytes(201); !errors.Is(err, ErrTransient) || !b.Refused() {
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
	if err := a.TakeBytes(121); err == nil || errors.Is(err, ErrTransient) || a.Refused() {
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
	if q.TakeBytes(200) == nil {
		t.Fatal("the pool is not full")
	}
	other.Release()
	q, err := pool.Await(t.Context(), q)
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
