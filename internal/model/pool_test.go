package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
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
		full := b.TakeBytes(500)
		if full == nil {
			t.Fatal("a charge beyond the pool")
		}
		granted := make(chan *Quota)
		go func() {
			next, err := pool.Await(t.Context(), b, full)
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
		full = next.TakeBytes(7001)
		if full == nil {
			t.Fatal("a charge beyond the pool")
		}
		if _, err := pool.Await(t.Context(), next, full); !errors.Is(err, ErrLimit) {
			t.Errorf("a query that needs more than the pool: %v", err)
		}
	})
}

// TestPoolHasNoDeadlock runs many queries that charge, give back, leave and fail, while other clients send
// light and heavy queries without end. All end soon, and those that do not leave have what they asked for.
// The pool is never above its bounds, and empty at the end. A deadlock panics.
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
	shared   bool // guarded by pool.mu
	attempts atomic.Int64
	over     atomic.Bool
}

func (c *crowd) run() {
	r := rand.New(rand.NewPCG(c.seed, 0))
	c.pool.MaxBytes = 1000 + r.Int64N(100_000)
	c.pool.Shared = func() bool { return c.shared }
	c.shared = r.IntN(2) == 0
	tenants := 1 + r.IntN(5)
	perQuery := c.pool.allHeavy() / (1 + r.Int64N(4))
	queries, others := 2+r.IntN(60), r.IntN(40)
	var all, endless sync.WaitGroup
	client := func(n int) (*rand.Rand, string, int64) {
		r := rand.New(rand.NewPCG(c.seed, uint64(n+1)))
		need := 1 + r.Int64N(perQuery)
		if r.IntN(2) == 0 {
			need = 1 + r.Int64N(c.pool.mostLight())
		}
		time.Sleep(time.Duration(r.IntN(1000)))
		return r, fmt.Sprint(r.IntN(tenants)), need
	}
	for n := range queries {
		all.Go(func() {
			r, tenant, need := client(n)
			attempts, err := c.query(r, tenant, need, perQuery)
			if err != nil {
				c.t.Error(err)
			}
			c.attempts.Add(attempts)
		})
	}
	for n := range others {
		endless.Go(func() {
			for r, tenant, need := client(queries + n); !c.over.Load(); {
				if _, err := c.query(r, tenant, need, perQuery); err != nil {
					c.t.Error(err)
				}
			}
		})
	}
	endless.Go(func() { // others come and go
		for r := rand.New(rand.NewPCG(c.seed, 1<<32)); !c.over.Load(); time.Sleep(time.Duration(1 + r.IntN(2000))) {
			c.pool.mu.Lock()
			c.shared = !c.shared
			c.pool.grant()
			c.pool.mu.Unlock()
		}
	})
	late := time.AfterFunc(time.Millisecond, func() { // they take a few microseconds
		c.t.Errorf("seed %d: a query starves", c.seed)
		c.over.Store(true)
	})
	all.Wait()
	late.Stop()
	c.over.Store(true)
	endless.Wait()
	if used := c.pool.Used(); used != 0 || c.pool.light.waiting+c.pool.heavy.waiting+len(c.pool.light.tenants)+len(c.pool.heavy.tenants) > 0 || c.pool.light.used != 0 {
		c.t.Errorf("seed %d: %d bytes are used at the end", c.seed, used)
	}
	// An attempt needs at least twice as much as the one before it, or becomes heavy.
	if most := int64(queries * 10); c.attempts.Load() > most {
		c.t.Errorf("seed %d: %d queries made %d attempts", c.seed, queries, c.attempts.Load())
	}
}

// check fails if the pool is above one of its bounds.
func (c *crowd) check() {
	p := &c.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.light.used < 0 || p.heavy.used < 0 || p.heavy.used > p.allHeavy() || p.light.used+p.heavy.used > p.MaxBytes {
		c.t.Errorf("seed %d: %d bytes of light queries and %d of heavy ones in %d", c.seed, p.light.used, p.heavy.used, p.MaxBytes)
	}
	for _, class := range []*class{&p.light, &p.heavy} {
		if w := class.first(); w != nil && p.fits(w.tenant, 0, w.bytes, w.age) {
			c.t.Errorf("seed %d: a query waits although there is room", c.seed)
		}
	}
}

// query charges need bytes, in as many attempts as it takes. One query of eight leaves while it waits.
func (c *crowd) query(r *rand.Rand, tenant string, need, perQuery int64) (attempts int64, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leaves := r.IntN(8) == 0
	q := &Quota{Tenant: tenant, Pool: &c.pool, MaxBytes: perQuery}
	for {
		attempts++
		ended := c.attempt(r, q, need)
		if ended == nil {
			return attempts, nil
		}
		if !q.Refused(ended) {
			return attempts, fmt.Errorf("an attempt failed that was not refused: %w", ended)
		}
		if leaves {
			time.AfterFunc(time.Duration(r.IntN(2000)), cancel)
		}
		next, err := c.pool.Await(ctx, q, ended)
		if err != nil && leaves || errors.Is(err, ErrTransient) && need > share(c.pool.allHeavy()) {
			return attempts, nil
		}
		if err != nil {
			return attempts, fmt.Errorf("seed %d: %d bytes of a pool of %d: %w", c.seed, need, c.pool.MaxBytes, err)
		}
		q = next
	}
}

// attempt charges need bytes from several goroutines, and gives some back at times.
func (c *crowd) attempt(r *rand.Rand, q *Quota, need int64) error {
	defer q.Release()
	var workers sync.WaitGroup
	var failed atomic.Pointer[error]
	const parts = 3
	for part := range int64(parts) {
		r := rand.New(rand.NewPCG(r.Uint64(), c.seed))
		left := need / parts
		if part == 0 {
			left += need % parts
		}
		workers.Go(func() {
			for left > 0 && failed.Load() == nil {
				n := min(left, 1+r.Int64N(1+need/4))
				if err := q.TakeBytes(n); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
				left -= n
				c.check()
				time.Sleep(time.Duration(1 + r.IntN(100)))
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
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// overlap keeps queries of n bytes running in a pool, without a moment in which none does, until the test of
// the bubble calls stop.
func overlap(t *testing.T, pool *QueryPool, clients int, n int64) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			time.Sleep(time.Duration(i) * 10 * time.Millisecond / time.Duration(clients))
			for ctx.Err() == nil {
				q := &Quota{Pool: pool}
				if full := q.TakeBytes(n); full != nil {
					if next, err := pool.Await(ctx, q, full); err == nil {
						q = next
					}
				}
				time.Sleep(9 * time.Millisecond)
				q.Release()
				time.Sleep(time.Millisecond)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	return func() {
		cancel()
		running.Wait()
	}
}

// TestLightQueriesLeaveRoom: light queries that overlap without end do not keep a query from a reservation of
// all that heavy ones may hold.
func TestLightQueriesLeaveRoom(t *testing.T) {
	for clients, bytes := range map[int]int64{2: 1, 9: 125, 40: 125} {
		for _, first := range []int64{1000, 3000, 3600, 5000, 6800} {
			synctest.Test(t, func(t *testing.T) {
				pool := &QueryPool{MaxBytes: 8000}
				stop := overlap(t, pool, clients, bytes)
				other, heavy := &Quota{Pool: pool}, &Quota{Pool: pool}
				for left := int64(7001) - first; left > 0 && other.TakeBytes(left) != nil; left-- {
				}
				full := heavy.TakeBytes(first)
				if full == nil {
					t.Fatal("the pool is not full")
				}
				other.Release()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				next, err := pool.Await(ctx, heavy, full)
				if err != nil {
					t.Errorf("%d clients of %d bytes, %d bytes refused: %v", clients, bytes, first, err)
				} else if err := next.TakeBytes(first); err != nil {
					t.Error(err)
				} else {
					next.Release()
				}
				stop()
				if used := pool.Used(); used != 0 {
					t.Errorf("%d bytes are used at the end", used)
				}
			})
		}
	}
}

// TestLightQueriesWaitByAge: a light query that waits is not overtaken by younger light ones for long.
func TestLightQueriesWaitByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := &QueryPool{MaxBytes: 8000}
		heavy, waits := &Quota{Pool: pool}, &Quota{Pool: pool}
		if err := heavy.TakeBytes(7000); err != nil {
			t.Fatal(err)
		}
		stop := overlap(t, pool, 1000, 1)
		full := waits.TakeBytes(125)
		if full == nil {
			t.Fatal("the pool is not full")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		next, err := pool.Await(ctx, waits, full)
		if err != nil {
			t.Error(err)
		} else {
			next.Release()
		}
		heavy.Release()
		stop()
	})
}

// TestLightAttempts: the reservation of a light query grows by half at least, too.
func TestLightAttempts(t *testing.T) {
	pool := &QueryPool{MaxBytes: 64_000} // 1000 for a light query
	q, attempts := &Quota{Pool: pool}, 1
	for ; ; attempts++ {
		var others []*Quota
		for left := pool.MaxBytes - pool.Used(); left > 0; left = pool.MaxBytes - pool.Used() {
			other := &Quota{Pool: pool}
			if err := other.TakeBytes(min(left, 1000)); err != nil {
				t.Fatal(err)
			}
			others = append(others, other)
		}
		charges, full := 0, error(nil)
		for charges < 100 && full == nil {
			if full = q.TakeBytes(10); full == nil {
				charges++
			}
		}
		for _, other := range others {
			other.Release()
		}
		if charges == 100 {
			break
		}
		var err error
		if q, err = pool.Await(t.Context(), q, full); err != nil {
			t.Fatal(err)
		}
	}
	if attempts > 8 {
		t.Errorf("%d attempts for 100 charges", attempts)
	}
}

// TestOneQueryOfATenantLeavesRoom: while several tenants send queries, even the only query of a tenant gets
// no more than the share. If it needs more, it is told so at once.
func TestOneQueryOfATenantLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := true
		// 7000 for heavy queries, 5250 for those of a tenant.
		pool := &QueryPool{MaxBytes: 8000, Shared: func() bool { return shared }}
		whole := &Quota{Tenant: "greedy", Pool: pool}
		if err := whole.TakeBytes(5250); err != nil {
			t.Fatal(err)
		}
		full := whole.TakeBytes(1)
		if full == nil {
			t.Fatal("a query takes more than the share of its tenant")
		}
		panel := &Quota{Tenant: "other", Pool: pool}
		if err := panel.TakeBytes(1750); err != nil {
			t.Errorf("a query of another tenant: %v", err)
		}
		panel.Release()
		refused := func(q *Quota, full error) {
			t.Helper()
			began := time.Now()
			_, err := pool.Await(t.Context(), q, full)
			if !errors.Is(err, ErrTransient) || !strings.Contains(fmt.Sprint(err), `"greedy" may hold 5250`) || !strings.Contains(err.Error(), "--memory") {
				t.Errorf("a query that needs more than its share: %v", err)
			}
			if time.Since(began) > 0 {
				t.Error("it is not told so at once")
			}
		}
		refused(whole, full)

		// A query is reserved twice what it was refused, and not more than the share.
		half, other := &Quota{Tenant: "greedy", Pool: pool}, &Quota{Tenant: "other", Pool: pool}
		err := other.TakeBytes(4000)
		if full = half.TakeBytes(3100); err != nil || full == nil {
			t.Fatal("the pool has another size")
		}
		time.AfterFunc(time.Second, other.Release)
		next, err := pool.Await(t.Context(), half, full)
		if err != nil || next.reserved != 5250 {
			t.Fatalf("%+v: %v", next, err)
		}
		next.Release()

		// One that waits for more than the share, because its tenant was alone, is told so once it is not.
		shared = false
		older, waits := &Quota{Tenant: "greedy", Pool: pool}, &Quota{Tenant: "greedy", Pool: pool}
		err = older.TakeBytes(1000)
		if full = waits.TakeBytes(6500); err != nil || full == nil {
			t.Fatal("the pool has another size")
		}
		var all sync.WaitGroup
		all.Go(func() { refused(waits, full) })
		synctest.Wait()
		shared = true
		if err := panel.TakeBytes(1000); err != nil { // makes the pool look again
			t.Error(err)
		}
		all.Wait()
		panel.Release()
		older.Release()

		shared = false
		if err := whole.TakeBytes(7000); err != nil {
			t.Errorf("an only tenant has less than everything: %v", err)
		}
		whole.Release()
		if pool.Used() != 0 || len(pool.heavy.tenants) != 0 {
			t.Errorf("%d bytes are used at the end", pool.Used())
		}
	})
}

// TestTenantsSharePool: while several tenants send queries, one that fills the pool leaves a quarter to
// others, whose queries pass its own.
func TestTenantsSharePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := false
		pool := &QueryPool{MaxBytes: 8000, Shared: func() bool { return shared }} // 7000 for heavy queries
		query := func(tenant string, bytes int64) *Quota {
			q := &Quota{Tenant: tenant, Pool: pool}
			if q.TakeBytes(bytes) != nil {
				return nil
			}
			return q
		}
		first, second := query("greedy", 4000), query("greedy", 1200)
		if more := query("greedy", 1000); more == nil {
			t.Error("an only tenant has less than everything")
		} else {
			more.Release()
		}
		shared = true
		refused := &Quota{Tenant: "greedy", Pool: pool}
		full := refused.TakeBytes(500)
		if full == nil {
			t.Fatal("a tenant holds more than three quarters")
		}
		granted := make(chan *Quota)
		await := func(q *Quota, full error) {
			next, err := pool.Await(t.Context(), q, full)
			if err != nil {
				t.Error(err)
			}
			granted <- next
		}
		go await(refused, full) // for 1000
		synctest.Wait()
		panel := query("other", 600)
		if panel == nil {
			t.Fatal("a query of another tenant waits behind those of the greedy one")
		}
		if first.TakeSpare(1, 4) || !panel.TakeSpare(400, 4) || panel.TakeSpare(1, 4) {
			t.Error("the wrong tenant can prefetch, or more than an eighth")
		}
		if err := panel.TakeBytes(500); err != nil {
			t.Error(err)
		}
		second.Release()
		next := <-granted
		if next.reserved != 1000 {
			t.Errorf("%d bytes are reserved", next.reserved)
		}
		// A tenant that holds nothing is in front of one that holds much, although its query is younger.
		older := &Quota{Tenant: "greedy", Pool: pool}
		younger := &Quota{Tenant: "third", Pool: pool}
		fullForOlder, fullForYounger := older.TakeBytes(600), younger.TakeBytes(600)
		if fullForOlder == nil || fullForYounger == nil {
			t.Fatal("the pool is not full")
		}
		go await(older, fullForOlder)
		synctest.Wait()
		go await(younger, fullForYounger)
		synctest.Wait()
		if first.TakeBytes(1) == nil {
			t.Error("the greedy tenant grows while another waits")
		}
		panel.Release()
		if got := <-granted; got.Tenant != "third" {
			t.Errorf("the memory goes to %s", got.Tenant)
		} else {
			got.Release()
		}
		first.Release()
		(<-granted).Release()
		next.Release()
		if pool.Used() != 0 || len(pool.heavy.tenants) != 0 || len(pool.light.tenants) != 0 {
			t.Errorf("%d bytes are used at the end", pool.Used())
		}
	})
}

// TestPoolName: an error says whose memory is full.
func TestPoolName(t *testing.T) {
	for name, want := range map[string]string{"": "the queries that are running hold", "forms of queries": "the forms of queries hold"} {
		err := (&Quota{Pool: &QueryPool{MaxBytes: 8, Name: name}}).TakeBytes(9)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "--memory") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
