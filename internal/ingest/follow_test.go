package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/topics"
)

// addHeld adds what a partition holds beyond what the bucket covers, as queries do: its rows are newer.
func addHeld(t *testing.T, got worldtest.Content, p *Partition, after uint64, tenants ...string) {
	t.Helper()
	ctx := t.Context()
	for _, tenant := range tenants {
		for _, f := range model.PointFamilies() {
			cursors, err := p.Head().SourceAfter(after, nil).Select(ctx, &model.Request{
				Tenant: tenant, Signal: model.Metrics, Family: f, Range: model.Always(), Quota: new(model.Quota), Cost: new(model.Cost),
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cursors {
				for c.Next(ctx) {
					var rows model.Rows
					if err := c.AppendRows(ctx, &rows); err != nil {
						t.Fatal(err)
					}
					got.AddRows(worldtest.ID{Tenant: tenant, Signal: model.Metrics, Labels: string(c.Labels())}, &rows)
				}
				if err := errors.Join(c.Err(), c.Close()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestFollower: a process ships a partition at any time, and another one follows. Whatever the bucket has at
// a moment, the rows of the follower complete it: the last value of each time counts, although rows of the
// same times come again and again, into windows that are open and into closed ones. The follower writes
// nothing to the bucket, and drops what is there.
func TestFollower(t *testing.T) {
	const records = 250
	r := newRig(t, 1)
	random := rand.New(rand.NewPCG(3, 4))
	begin := time.Now().Add(-5 * time.Minute).UnixNano()
	pushes := worldtest.Pushes{Tenants: []string{"a"}, Series: 3, Rows: 3, Time: func() int64 { return begin + int64(random.IntN(40))*10e9 }}
	for n := range 4 {
		pushes.Labels = append(pushes.Labels, model.LabelsOf("__name__", "x", "n", string(rune('a'+n))))
	}
	o := r.options(r.catalog(), 0)
	o.ShipEvery = time.Hour
	shipping := r.open(o)
	stopShipping := r.running(shipping)
	o = r.options(r.catalog(), 0)
	o.Ships, o.FollowEvery = ShipsNever, time.Hour
	follower := r.open(o)
	stop := r.running(follower)

	want, asked, straddling := worldtest.Content{}, 0, 0
	for n := range int64(records) {
		b := pushes.Batch(random, model.Metrics)
		want.Push(b)
		r.log.append(0, b, true)
		r.waitFor("the records", func() bool { return shipping.Next() > n && follower.Next() > n })
		switch random.IntN(14) {
		case 0:
			if err := shipping.Ship(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 1:
			if err := follower.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			if from, to := follower.Held(); from > to+1 {
				t.Fatalf("it holds %d to %d", from, to)
			}
		case 2, 3:
			c := r.catalog()
			covered := c.Covered(topics.Node(0), 1).To
			got := r.content(c)
			addHeld(t, got, follower, covered, "a")
			if d := want.Diff(got); d != "" {
				t.Fatalf("record %d, of which the bucket covers %d: %s", n, covered, d)
			}
			asked++
			v := follower.Head().Pin(model.Metrics)
			for _, p := range v.DataParts {
				if p.Info.SeqLo <= covered && covered < p.Info.SeqHi {
					straddling++
				}
				p.Unpin()
			}
			for _, p := range v.LabelParts {
				p.Unpin()
			}
		}
	}
	// Parts are merged by the clock: a slow machine has fewer that straddle what is covered.
	if asked < 10 || straddling == 0 {
		t.Errorf("asked %d times, and %d parts had rows of both sides: the test has tried little", asked, straddling)
	}
	t.Logf("asked %d times; %d parts had rows of both sides", asked, straddling)
	// Two ships later nothing from before the first of them is held.
	for range 2 {
		if err := errors.Join(shipping.Ship(t.Context()), follower.Follow(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	held := worldtest.Content{}
	addHeld(t, held, follower, 0, "a")
	if len(held) > 0 {
		t.Errorf("the bucket has everything, and the follower holds rows of %d series", len(held))
	}
	ships := r.catalog().Progress(topics.Node(0), 1)
	if err := errors.Join(stop(), follower.Close()); err != nil {
		t.Fatal(err)
	}
	if now := r.catalog().Progress(topics.Node(0), 1); now.Ship != ships.Ship {
		t.Errorf("the follower has shipped: %+v", now)
	}
	if err := errors.Join(stopShipping(), shipping.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestStandby: a standby ships once the other process does not, in any state of its parts, and follows again
// once the other one is back. The bucket has the last value of each time in the end.
func TestStandby(t *testing.T) {
	const records = 200
	r := newRig(t, 1)
	random := rand.New(rand.NewPCG(5, 6))
	begin := time.Now().Add(-5 * time.Minute).UnixNano()
	pushes := worldtest.Pushes{Tenants: []string{"a"}, Series: 3, Rows: 3, Time: func() int64 { return begin + int64(random.IntN(40))*10e9 }}
	for n := range 4 {
		pushes.Labels = append(pushes.Labels, model.LabelsOf("__name__", "x", "n", string(rune('a'+n))))
	}
	standby := Own(OwnerOptions{Moves: true, Of: func(n int32, _ int) Options {
		o := r.options(r.catalog(), n)
		o.Ships, o.ShipEvery = ShipsStandby, 200*time.Millisecond
		return o
	}})
	t.Cleanup(standby.Stop)
	first := r.options(r.catalog(), 0)
	p := r.open(first)
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	standby.Hold(0)
	want := worldtest.Content{}
	push := func() {
		b := pushes.Batch(random, model.Metrics)
		want.Push(b)
		r.log.append(0, b, true)
		time.Sleep(time.Millisecond)
	}
	covered := func() uint64 { return r.catalog().Covered(topics.Node(0), 1).To }
	for range records {
		push()
	}
	p.Lose() // it dies: no last ship
	kill()
	if err := errors.Join(<-ended, p.Close()); err != nil {
		t.Fatal(err)
	}
	for range records {
		push()
	}
	r.waitFor("a ship of the standby", func() bool { return covered() == 2*records })
	var life string
	standby.Each(func(_ int32, p *Partition, _ State, _ error) {
		if p != nil {
			life = p.Life()
		}
	})
	if by := r.catalog().Progress(topics.Node(0), 1).Life; by != life {
		t.Errorf("the last ship is of %q, the standby is %q", by, life)
	}
	// It ships more often, so that it is the first one before long.
	back := r.mover(nil, func(o *Options) { o.ShipEvery = 90 * time.Millisecond })
	back.Hold(0)
	total := uint64(2 * records)
	r.waitFor("a standby that follows", func() (follows bool) {
		push() // only a ship that is refused tells it
		total++
		standby.Each(func(_ int32, p *Partition, s State, _ error) {
			follows = p != nil && s == Ready && p.gate.follows.Load()
		})
		return follows
	})
	back.Stop()
	if n := covered(); n != total {
		t.Errorf("the bucket covers %d records of %d", n, total)
	}
	if d := want.Diff(r.content(r.catalog())); d != "" {
		t.Error(d)
	}
}

// TestFollowerAtEnd: at the end of a topic, a follower holds its rows until the other process has closed the
// partition. It closes nothing itself.
func TestFollowerAtEnd(t *testing.T) {
	r := newTwoEpochs(t)
	o := r.optionsOf(r.catalog(), 1, 0)
	o.Ships, o.FollowEvery = ShipsNever, 10*time.Millisecond
	follower := r.open(o)
	ended := make(chan error, 1)
	go func() { ended <- follower.Run(t.Context()) }()
	r.log.append(0, sample("a", 0, 1, time.Now().UnixNano(), 1), true)
	r.end()
	r.waitFor("the end of the topic", func() bool { return follower.Next() == 1 })
	select {
	case err := <-ended:
		t.Fatalf("it ended with rows that the bucket has not: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	held := worldtest.Content{}
	addHeld(t, held, follower, 0, "a")
	if at := r.catalog().Progress(topics.Node(0), 1); at.Closed || at.To != 0 || len(held) != 1 {
		t.Errorf("it holds rows of %d series, and has shipped: %+v", len(held), at)
	}
	p := r.open(r.optionsOf(r.catalog(), 1, 0))
	if err := p.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("the follower ended with %v", err)
	}
	if err := errors.Join(p.Close(), follower.Close()); err != nil {
		t.Fatal(err)
	}
}
