package model

import (
	"errors"
	"testing"
)

func TestQueryPool(t *testing.T) {
	pool := &QueryPool{MaxBytes: 100}
	a, b := &Quota{MaxBytes: 80, Pool: pool}, &Quota{Pool: pool}
	if err := a.TakeBytes(70); err != nil {
		t.Fatal(err)
	}
	if err := b.TakeBytes(40); !errors.Is(err, ErrTransient) {
		t.Errorf("more than all may hold: %v", err)
	}
	if err := b.TakeBytes(30); err != nil {
		t.Error(err)
	}
	if err := a.TakeBytes(-20); err != nil {
		t.Error(err)
	}
	if err := a.TakeBytes(31); err == nil || errors.Is(err, ErrTransient) {
		t.Errorf("more than one may hold, when the pool has no room either: %v", err)
	}
	a.Release()
	if got := pool.Used(); got != 30 {
		t.Errorf("%d bytes are used, want 30", got)
	}
	if err := b.TakeBytes(70); err != nil {
		t.Error(err)
	}
	b.Release()
	b.Release()
	if got := pool.Used(); got != 0 {
		t.Errorf("%d bytes are used at the end", got)
	}
}
