package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwait: a refused query gets a reservation of twice its memory once there is room, nothing else takes
// that, and a query that needs more than the pool is told so.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := &QueryPool{MaxBytes: 8000} // 7000 for queries of more than 125
		a, b, young := &Quota{Pool: pool}, &Quota{Pool: pool}, &Quota{Pool: pool}
		if err := errors.Join(a.TakeBytes(5000), b.TakeBytes(2000), young.TakeBytes(100)); err != nil {
			t.Fatal(err)
		}
		if err := b.TakeBytes(500); err == nil {
			t.Fatal("a charge beyond the pool")
		}
		granted := make(chan *Quota)
		go func() {
			next, err := pool.Await(t.Context(), b)
			if err != nil {
				t.Error(err)
			}
			granted <- next
		}()
		synctest.Wait() // it waits for 5000
		if err := young.TakeBytes(100); !errors.Is(err, ErrTransient) {
			t.Errorf("a younger query overtakes one that waits: %v", err)
		}
		if err := (&Quota{Pool: pool}).TakeBytes(125); err != nil {
			t.Errorf("a light query: %v", err)
		}
		if err := a.TakeBytes(1000); err != nil {
			t.Errorf("an older query: %v", err)
		}
		if young.Settle(); young.TakeBytes(100) != nil || young.TakeBytes(-100) != nil {
			t.Error("a younger query that has begun to send its result is refused")
		}
		a.Release()
		next := <-granted
		if got := pool.Used(); got != 5000+100+125 {
			t.Errorf("%d bytes are used", got)
		}
		if err := next.TakeBytes(5000); err != nil || pool.Used() != 5225 {
			t.Errorf("the reservation: %v, %d bytes are used", err, pool.Used())
		}
		if err := young.TakeBytes(100); err != nil {
			t.Errorf("when none waits any more: %v", err)
		}
		next.Release()
		if err := next.TakeBytes(7001); err == nil {
			t.Fatal("a charge beyond the pool")
		}
		if _, err := pool.Await(t.Context(), next); !errors.Is(err, ErrLimit) {
			t.Errorf("a query that needs more than the pool: %v", err)
		}
	})
}

// TestPoolHasNoDeadlock runs many queries that charge, give back, leave and fail. All end, and those that do
// not leave have what they asked for; the pool is never above its bound, and empty at the end. A deadlock
// panics: nothing here has a timeout.
func TestPoolHasNoDeadlock(t *testing.T) {
	rounds := uint64(60)
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) { (&crowd{t: t, seed: seed}).run() })
	}
}

type crowd struct {
	t        *testing.T
	seed     uint64
	pool     QueryPool
	attempts atomic.Int64
}

func (c *crowd) run() {
	r := rand.New(rand.NewPCG(c.seed, 0))
	c.pool.MaxBytes = 1000 + r.Int64N(100_000)
	perQuery := c.pool.heavy() / (1 + r.Int64N(4))
	queries := 2 + r.IntN(60)
	var all sync.WaitGroup
	for n := range queries {
		all.Go(func() {
			r := rand.New(rand.NewPCG(c.seed, uint64(n+1)))
			need := 1 + r.Int64N(perQuery)
			if r.IntN(2) == 0 {
				need = 1 + r.Int64N(c.pool.light())
			}
			time.Sleep(time.Duration(r.IntN(1000)))
			if err := c.query(r, need, perQuery); err != nil {
				c.t.Error(err)
			}
		})
	}
	all.Wait()
	if used := c.pool.Used(); used != 0 || len(c.pool.queue) > 0 || c.pool.oldest.Load() != 0 || c.pool.waits.Load() != 0 {
		c.t.Errorf("seed %d: %d bytes are used at the end, %d wait", c.seed, used, len(c.pool.queue))
	}
	// An attempt needs at least twice as much as the one before it, or becomes heavy.
	if most := int64(queries * 10); c.attempts.Load() > most {
		c.t.Errorf("seed %d: %d queries made %d attempts", c.seed, queries, c.attempts.Load())
	}
}

// query charges need bytes, in as many attempts as it takes. One query of eight leaves while it waits.
func (c *crowd) query(r *rand.Rand, need, perQuery int64) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leaves := r.IntN(8) == 0
	q := &Quota{Pool: &c.pool, MaxBytes: perQuery}
	for {
		c.attempts.Add(1)
		if c.attempt(r, q, need) {
			return nil
		}
		if !q.Refused() {
			return errors.New("an attempt failed that was not refused")
		}
		if leaves {
			time.AfterFunc(time.Duration(r.IntN(2000)), cancel)
		}
		next, err := c.pool.Await(ctx, q)
		if err != nil && leaves {
			return nil
		}
		if err != nil {
			return fmt.Errorf("seed %d: %d bytes of a pool of %d: %w", c.seed, need, c.pool.MaxBytes, err)
		}
		q = next
	}
}

// attempt charges need bytes from several goroutines, and gives some back at times.
func (c *crowd) attempt(r *rand.Rand, q *Quota, need int64) bool {
	defer q.Release()
	var workers sync.WaitGroup
	var failed atomic.Bool
	const parts = 3
	for part := range int64(parts) {
		r := rand.New(rand.NewPCG(r.Uint64(), c.seed))
		left := need / parts
		if part == 0 {
			left += need % parts
		}
		workers.Go(func() {
			for left > 0 && !failed.Load() {
				n := min(left, 1+r.Int64N(1+need/4))
				if q.TakeBytes(n) != nil {
					failed.Store(true)
					return
				}
				left -= n
				if used := c.pool.Used(); used > c.pool.MaxBytes {
					c.t.Errorf("seed %d: %d bytes of %d are used", c.seed, used, c.pool.MaxBytes)
				}
				time.Sleep(time.Duration(r.IntN(100)))
				if r.IntN(4) == 0 && q.TakeBytes(-n) == nil {
					left += n
				}
				if q.TakeSpare(1, 2) {
					q.GiveSpare(1)
				}
			}
		})
	}
	workers.Wait()
	return !failed.Load()
}
