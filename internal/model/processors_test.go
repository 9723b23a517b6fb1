package model

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestProcessorsAreShared: the goroutines of a tenant compute on all processors that they like, on those of
// the machine when other tenants send queries, and on three quarters while a query of another tenant runs, or
// while it has several itself and others send queries all the time.
func TestProcessorsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const goroutines = 24
		var shared, mixed atomic.Bool
		p := &Processors{Count: 8, Shared: shared.Load, Mixed: mixed.Load}
		var running atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			own, end := p.Run(ctx, "greedy")
			defer end()
			for range goroutines {
				all.Go(func() {
					own, done := Computing(own)
					defer done()
					for x := ProcessorOf(own); ctx.Err() == nil; x.Enter(own) {
						running.Add(1)
						time.Sleep(time.Millisecond) // it computes a page
						running.Add(-1)
						x.Leave()
					}
				})
			}
			ProcessorOf(own).Leave()
			<-ctx.Done()
		})
		computes := func(want int64, when string) {
			t.Helper()
			time.Sleep(10*time.Millisecond + time.Microsecond)
			if got := running.Load(); got != want {
				t.Errorf("%s, %d goroutines compute, want %d", when, got, want)
			}
		}
		computes(goroutines, "alone")
		shared.Store(true)
		computes(8, "with others that send queries at times")
		began := time.Now()
		_, end := p.Run(ctx, "other")
		if time.Since(began) > 0 {
			t.Error("the query of another tenant waits for a processor")
		}
		computes(6, "with a query of another tenant")
		end()
		computes(8, "after it")
		mixed.Store(true)
		computes(8, "alone among many queries of others")
		own, end := p.Run(ctx, "greedy")
		ProcessorOf(own).Leave()
		computes(6, "with two queries among many of others")
		end()
		computes(8, "after the second")
		cancel()
		all.Wait()
		if len(p.tenants) > 0 {
			t.Errorf("%d tenants are left", len(p.tenants))
		}
	})
}

// TestProcessorsOfATenantAreFair: goroutines of a tenant get a processor in turn.
func TestProcessorsOfATenantAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Processors{Count: 1, Shared: func() bool { return true }}
		pages := make([]int, 5)
		var all sync.WaitGroup
		for i := range pages {
			all.Go(func() {
				ctx, end := p.Run(t.Context(), "a")
				defer end()
				for began := time.Now(); time.Since(began) < time.Second; pages[i]++ {
					time.Sleep(time.Millisecond)
					ProcessorOf(ctx).Leave()
					ProcessorOf(ctx).Enter(ctx)
				}
			})
		}
		all.Wait()
		for _, n := range pages {
			if n < 190 || n > 210 {
				t.Errorf("goroutines have computed %v pages", pages)
			}
		}
	})
}

// TestProcessorsNeverHang: even a goroutine that breaks the rules, and waits for another one while it has the
// only processor, goes on.
func TestProcessorsNeverHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Processors{Count: 1, Shared: func() bool { return true }}
		ctx, end := p.Run(t.Context(), "a")
		defer end()
		began := time.Now()
		var other sync.WaitGroup
		other.Go(func() {
			_, done := Computing(ctx)
			done()
		})
		if other.Wait(); time.Since(began) > patience {
			t.Errorf("it took %s", time.Since(began))
		}
	})
}

// TestProcessorEnds: a goroutine counts once, whatever it and its helpers do.
func TestProcessorEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Processors{Count: 2, Shared: func() bool { return true }}
		ctx, end := p.Run(t.Context(), "a")
		x := ProcessorOf(ctx)
		check := func(want int) {
			t.Helper()
			if x.c.running != want {
				t.Errorf("%d goroutines compute, want %d", x.c.running, want)
			}
		}
		x.Enter(ctx)
		check(1)
		x.Leave()
		x.Leave() // by a helper
		check(0)
		var helpers sync.WaitGroup
		for range 3 {
			helpers.Go(func() { x.Enter(ctx) })
		}
		helpers.Wait()
		check(1)
		ProcessorOf(NotComputing(ctx)).Leave()
		check(1)
		end()
		x.Leave()
		x.Enter(ctx) // a response is written after the end
		check(0)
		if len(p.tenants) != 0 {
			t.Errorf("%d tenants are left", len(p.tenants))
		}
		// Without processors nothing is bounded.
		none, end := (*Processors)(nil).Run(t.Context(), "a")
		own, done := Computing(none)
		ProcessorOf(own).Leave()
		ProcessorOf(own).Enter(own)
		done()
		end()
		if NotComputing(none) != none {
			t.Error("a context without a processor changes")
		}
	})
}

// TestProcessorsUnderCancels runs goroutines whose contexts end while they wait. None is counted at the end.
func TestProcessorsUnderCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Processors{Count: 4, Shared: func() bool { return true }}
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%17)*time.Millisecond)
				defer cancel()
				ctx, end := p.Run(ctx, fmt.Sprint(i%3))
				defer end()
				for range 10 {
					time.Sleep(time.Duration(i%5) * 100 * time.Microsecond)
					ProcessorOf(ctx).Leave()
					ProcessorOf(ctx).Enter(ctx)
				}
			})
		}
		time.Sleep(2500 * time.Microsecond)
		if p.Waiting() == 0 {
			t.Error("no goroutine waits")
		}
		if all.Wait(); p.Waiting() != 0 || len(p.tenants) != 0 {
			t.Errorf("%d goroutines and %d tenants are left", p.Waiting(), len(p.tenants))
		}
	})
}

// BenchmarkLeaveAndEnter is a goroutine of an only tenant between two pages.
func BenchmarkLeaveAndEnter(b *testing.B) {
	ctx, end := (&Processors{Count: 2}).Run(b.Context(), "a")
	defer end()
	b.ReportAllocs()
	for b.Loop() {
		x := ProcessorOf(ctx)
		x.Leave()
		x.Enter(ctx)
	}
}
