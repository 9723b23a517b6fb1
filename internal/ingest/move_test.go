package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/topics"
)

// mover returns an owner whose partitions move, on a machine of its own.
func (r *rig) mover(reg *prometheus.Registry, change func(*Options)) *Owner {
	r.t.Helper()
	c := r.catalog()
	o := OwnerOptions{Moves: true, Of: func(p int32, _ int) Options {
		o := r.options(c, p)
		if change != nil {
			change(&o)
		}
		return o
	}}
	if reg != nil {
		o.Metrics = NewOwnerMetrics(reg)
	}
	w := Own(o)
	r.t.Cleanup(w.Stop)
	return w
}

// stateOf returns what an owner does with a partition; empty: nothing.
func stateOf(w *Owner, number int32) (state State) {
	w.Each(func(n int32, _ *Partition, s State, _ error) {
		if n == number {
			state = s
		}
	})
	return state
}

// TestMoveIsSeen: the owner before ships, and answers queries until the next owner has shipped a row that
// came later. The other partition goes on all the time.
func TestMoveIsSeen(t *testing.T) {
	r := newRig(t, 2)
	at := time.Now().UnixNano()
	late := func(o *Options) { o.ShipEvery = time.Hour }
	before, next := r.mover(prometheus.NewPedanticRegistry(), late), r.mover(nil, late)
	before.Hold(0, 1)
	r.log.append(0, sample("t", 0, 2, at, 1), true)
	r.log.append(1, sample("t", 1, 2, at, 1), true)
	r.waitFor("the first owner", func() bool { return stateOf(before, 0) == Ready && stateOf(before, 1) == Ready })
	before.Release(t.Context(), 0)
	if covered := r.catalog().Covered(topics.Node(0), 1).To; covered != 1 {
		t.Errorf("after the release the bucket has %d records", covered)
	}
	r.log.append(0, sample("t", 0, 2, at+1e9, 2), false)
	r.log.append(1, sample("t", 1, 2, at+1e9, 2), false)
	r.waitFor("the records", func() bool {
		reached := 0
		before.Each(func(_ int32, p *Partition, _ State, _ error) {
			if p != nil && p.Next() == 2 {
				reached++
			}
		})
		return reached == 2
	})
	if s, err := stateOf(before, 0), before.Ready(); s != Leaving || err != nil {
		t.Errorf("a partition that was let go is %s, and the process %v", s, err)
	}
	next.Hold(0)
	r.waitFor("the end of the first owner", func() bool { return stateOf(before, 0) == "" })
	if covered := r.catalog().Covered(topics.Node(0), 1).To; covered != 2 || stateOf(next, 0) != Ready {
		t.Errorf("the next owner is %s and has shipped %d records", stateOf(next, 0), covered)
	}
	if stateOf(before, 1) != Ready {
		t.Errorf("the other partition is %s", stateOf(before, 1))
	}
}

// TestLostComesBack: after a lost session nothing is shipped. If the partition comes back, the same head goes
// on.
func TestLostComesBack(t *testing.T) {
	r := newRig(t, 1)
	w := r.mover(nil, nil)
	w.Hold(0)
	r.waitFor("the partition", func() bool { return stateOf(w, 0) == Ready })
	var life string
	w.Each(func(_ int32, p *Partition, _ State, _ error) { life = p.Life() })
	w.Lose(0)
	r.log.append(0, sample("t", 0, 1, time.Now().UnixNano(), 1), true)
	time.Sleep(300 * time.Millisecond) // several ships would be due
	if covered := r.catalog().Covered(topics.Node(0), 1).To; covered != 0 {
		t.Errorf("%d records were shipped without a session", covered)
	}
	w.Hold(0)
	r.waitFor("a ship", func() bool { return r.catalog().Covered(topics.Node(0), 1).To == 1 })
	w.Each(func(_ int32, p *Partition, _ State, _ error) {
		if p.Life() != life {
			t.Error("the partition was opened again")
		}
	})
}

// TestReleaseWithoutBucket: a partition is let go within the time of the context, though a ship is on its way
// that does not end.
func TestReleaseWithoutBucket(t *testing.T) {
	r := newRig(t, 1)
	w := r.mover(nil, nil)
	w.Hold(0)
	r.waitFor("the partition", func() bool { return stateOf(w, 0) == Ready })
	r.bucket.Add(fault.Rule{Kind: fault.Slow, Delay: time.Hour, Op: fault.PutIfAbsent})
	r.log.append(0, sample("t", 0, 1, time.Now().UnixNano(), 1), true)
	r.waitFor("a ship", func() bool { return r.bucket.Hits() > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var released atomic.Bool
	go func() {
		w.Release(ctx, 0)
		released.Store(true)
	}()
	r.waitFor("the release", released.Load)
	if s := stateOf(w, 0); s != Leaving {
		t.Errorf("the partition is %s", s)
	}
}

// still opens a partition that ships only when it is told to.
func (r *rig) still() *Partition {
	o := r.options(r.catalog(), 0)
	o.ShipEvery, o.Head.Windows.Window = time.Hour, 2*time.Hour
	return r.open(o)
}

func (r *rig) succeeded(p *Partition) bool {
	r.t.Helper()
	done, err := p.Succeeded(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return done
}

// TestOwnShipIsNoSuccessors: an own ship whose answer was lost is not taken for that of the next owner.
func TestOwnShipIsNoSuccessors(t *testing.T) {
	r := newRig(t, 1)
	p := r.still()
	stop := r.running(p)
	r.log.append(0, sample("t", 0, 1, time.Now().UnixNano(), 1), true)
	r.waitFor("the record", func() bool { return p.Next() == 1 })
	r.bucket.Add(fault.Rule{Kind: fault.LostAck, Op: fault.PutIfAbsent, Times: 1, Prefix: "catalog/ship-"})
	r.bucket.Add(fault.Rule{Kind: fault.Fail, Op: fault.Get, Times: 1, Skip: 1, Prefix: "catalog/ship-"})
	if err := p.Release(t.Context()); err == nil {
		t.Fatal("the answer was not lost")
	}
	if covered := r.catalog().Covered(topics.Node(0), 1).To; covered != 1 || r.succeeded(p) {
		t.Errorf("%d records are covered, and the partition takes its own ship for another's: %t", covered, r.succeeded(p))
	}
	if err := errors.Join(stop(), p.Close()); err != nil {
		t.Error(err)
	}
}

// TestSuccessorHasAll: a next owner that has shipped less than this process had does not succeed it yet.
func TestSuccessorHasAll(t *testing.T) {
	r := newRig(t, 1)
	append := func() { r.log.append(0, sample("t", 0, 1, time.Now().UnixNano(), 1), true) }
	p, next := r.still(), r.still()
	stop := r.running(p)
	append()
	append()
	r.waitFor("two records", func() bool { return p.Next() == 2 })
	p.Lose()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.log.mu.Lock()
	all := r.log.records[0]
	r.log.records[0] = all[:1]
	r.log.mu.Unlock()
	stopNext := r.running(next)
	r.waitFor("the next owner", func() bool { return next.Next() == 1 })
	if err := next.Ship(t.Context()); err != nil || r.succeeded(p) {
		t.Errorf("the next owner has shipped one record of two (%v), and is taken for the successor: %t", err, r.succeeded(p))
	}
	r.log.mu.Lock()
	r.log.records[0] = all
	r.log.mu.Unlock()
	r.waitFor("the second record", func() bool { return next.Next() == 2 })
	if err := next.Ship(t.Context()); err != nil || !r.succeeded(p) {
		t.Errorf("the next owner has shipped all (%v), and is taken for the successor: %t", err, r.succeeded(p))
	}
	if err := errors.Join(p.Close(), stopNext(), next.Close()); err != nil {
		t.Error(err)
	}
}

// TestComesBackLate: a partition that another process has shipped meanwhile is opened again at once, and does
// not fail at its next ship.
func TestComesBackLate(t *testing.T) {
	r := newRig(t, 1)
	late := func(o *Options) { o.ShipEvery = time.Hour }
	before, next := r.mover(nil, late), r.mover(nil, late)
	before.Hold(0)
	r.waitFor("the partition", func() bool { return stateOf(before, 0) == Ready })
	var p *Partition
	before.Each(func(_ int32, of *Partition, _ State, _ error) { p = of })
	p.Lose()
	r.log.append(0, sample("t", 0, 1, time.Now().UnixNano(), 1), true)
	next.Hold(0)
	r.waitFor("the ship of the next owner", func() bool { return r.succeeded(p) })
	before.Hold(0)
	r.waitFor("another life", func() bool {
		var life string
		before.Each(func(_ int32, of *Partition, _ State, err error) {
			if of != nil {
				life = of.Life()
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		return life != "" && life != p.Life() && before.Ready() == nil
	})
}

// TestLostMerges: rows that a lost partition cannot ship do not keep its head from merging.
func TestLostMerges(t *testing.T) {
	r := newRig(t, 1)
	var of head.Options
	w := r.mover(nil, func(o *Options) { o.ShipEvery, of = time.Hour, o.Head })
	w.Hold(0)
	r.waitFor("the partition", func() bool { return stateOf(w, 0) == Ready })
	w.Lose(0)
	var h *head.Head
	w.Each(func(_ int32, p *Partition, _ State, _ error) { h = p.Head() })
	const records = 200
	for n := range records {
		at := time.Now().Add(-time.Hour).UnixNano() + int64(n) // a window that is due
		r.log.append(0, sample("t", 0, 1, at, 1), true)
		r.waitFor("the flush", func() bool { return h.Covered() == uint64(n+1) })
	}
	r.waitFor("merges", func() bool {
		files, err := of.FS.List(of.Dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(files) < records/4
	})
}

// TestShares: shares are doubled when partitions come, and fewer after a while. Partitions with a larger
// share are opened again.
func TestShares(t *testing.T) {
	r := newRig(t, 4)
	c := r.catalog()
	var mu sync.Mutex
	share := map[int32]int{}
	w := Own(OwnerOptions{Moves: true, Shrink: 10 * time.Millisecond, Of: func(p int32, shares int) Options {
		mu.Lock()
		defer mu.Unlock()
		share[p] = shares
		return r.options(c, p)
	}})
	t.Cleanup(w.Stop)
	have := func(what string, shares int, partitions ...int32) {
		t.Helper()
		r.waitFor(what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, p := range partitions {
				if share[p] != shares {
					return false
				}
			}
			return w.Ready() == nil
		})
	}
	w.Hold(0)
	have("one", 1, 0)
	w.Hold(1, 2, 3)
	have("four", 4, 0, 1, 2, 3)
	w.Release(t.Context(), 1, 2, 3)
	other := r.mover(nil, nil)
	other.Hold(1, 2, 3)
	for p := range int32(4) {
		r.log.append(int(p), sample("t", p, 4, time.Now().UnixNano(), 1), true)
	}
	have("one again", 1, 0)
}

// TestLostWithoutGroup: a partition that was lost goes on answering, also without rows to ship, until the
// process is in the group again.
func TestLostWithoutGroup(t *testing.T) {
	r := newRig(t, 2)
	w := r.mover(nil, func(o *Options) { o.ShipEvery = time.Hour })
	w.o.Idle = time.Nanosecond
	w.Hold(0)
	r.waitFor("the partition", func() bool { return stateOf(w, 0) == Ready })
	w.Lose(0)
	r.bucket.Add(fault.Rule{Kind: fault.Slow, Op: fault.Get}) // counts how often the bucket is asked
	r.waitFor("some looks", func() bool { return r.bucket.Hits() >= 3 })
	if s := stateOf(w, 0); s != Leaving {
		t.Errorf("without a group the partition is %q", s)
	}
	w.Hold()
	r.waitFor("the end of the partition", func() bool { return stateOf(w, 0) == "" })
}

// TestSharesWithoutBucket: a partition that cannot be shipped keeps its share, and goes on.
func TestSharesWithoutBucket(t *testing.T) {
	r := newRig(t, 2)
	w := r.mover(nil, func(o *Options) { o.ShipEvery, o.Head.Windows.Window = time.Hour, 2*time.Hour })
	w.Hold(0)
	r.log.append(0, sample("t", 0, 2, time.Now().UnixNano(), 1), true)
	var p *Partition
	r.waitFor("the first ship", func() bool {
		w.Each(func(_ int32, of *Partition, _ State, _ error) { p = of })
		return p != nil && p.Shipped() == 1
	})
	r.bucket.Add(fault.Rule{Kind: fault.Fail, Op: fault.PutIfAbsent})
	r.log.append(0, sample("t", 0, 2, time.Now().UnixNano(), 1), true)
	r.waitFor("the second record", func() bool { return p.Next() == 2 })
	w.Hold(1)
	r.waitFor("a ship that fails", func() bool { return r.bucket.Hits() > 0 })
	r.log.append(0, sample("t", 0, 2, time.Now().UnixNano(), 1), true)
	r.waitFor("the third record", func() bool { return p.Next() == 3 && w.Ready() == nil })
	r.bucket.Clear()
}

// TestRandomMoves: partitions move between three owners at random, orderly, by lost sessions and by lost
// machines, while rows come. The bucket has each row once in the end, and of samples of one time the last.
func TestRandomMoves(t *testing.T) {
	const partitions, records = 4, 400
	r := newRig(t, partitions)
	random := rand.New(rand.NewPCG(7, 7))
	want := worldtest.Content{}
	begin := time.Now().Add(-10 * time.Minute).UnixNano()
	owners := []*Owner{r.mover(nil, nil), r.mover(nil, nil), r.mover(nil, nil)}
	holder := make([]int, partitions)
	for p := range int32(partitions) {
		owners[0].Hold(p)
	}
	for n := range records {
		p := int32(random.IntN(partitions))
		b := sample("t", p, partitions, begin+int64(random.IntN(40))*15e9, float64(n))
		want.Push(b)
		r.log.append(int(p), b, true)
		if n%10 != 0 {
			continue
		}
		from, to := holder[p], random.IntN(len(owners))
		switch random.IntN(4) {
		case 0:
			owners[from].Lose(p)
		case 1: // both believe that it is theirs
		default:
			owners[from].Release(t.Context(), p)
		}
		owners[to].Hold(p)
		holder[p] = to
		time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
	}
	for p := range int32(partitions) {
		for i, w := range owners {
			if i != holder[p] {
				w.Lose(p)
			}
		}
	}
	c := r.catalog()
	r.waitFor("the last ships", func() bool {
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for p := range int32(partitions) {
			if c.Covered(topics.Node(p), 1).To != uint64(r.log.end(p)) {
				return false
			}
		}
		return true
	})
	if d := want.Diff(r.content(c)); d != "" {
		t.Error(d)
	}
}
