package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// twoEpochs is a rig whose topic another one with two partitions follows.
type twoEpochs struct {
	*rig
	second *topicLog
	ended  atomic.Bool // the second epoch is recorded
}

func newTwoEpochs(t *testing.T) *twoEpochs {
	r := &twoEpochs{rig: newRig(t, 1), second: newTopicLog(2)}
	r.epochs = append(r.epochs, topics.Epoch{Number: 2, Topic: "shale-2", ID: "Z0QiPvSMSIWJiSmPzyJFCg", Partitions: 2, Begins: make([]int64, 2), Begun: 2})
	return r
}

// end records the second epoch.
func (r *twoEpochs) end() {
	r.epochs[1].BeforeEnds = []int64{r.log.end(0)}
	r.ended.Store(true)
}

func (r *twoEpochs) optionsOf(c *catalog.Catalog, epoch uint64, partition int32) Options {
	o := r.options(c, partition)
	o.Epoch = epoch
	o.End = func(epoch uint64, partition int32) (int64, bool) {
		if !r.ended.Load() {
			return 0, false
		}
		return topics.End(r.epochs, epoch, partition)
	}
	o.open = func(ctx context.Context, ro kafka.ReaderOptions) (reader, error) {
		if ro.Topic == "shale-2" {
			return r.second.open(ctx, ro)
		}
		return r.log.open(ctx, ro)
	}
	return o
}

// split returns the part of a batch for a partition of two.
func split(b *worldtest.Batch, partition int32) *worldtest.Batch {
	part := *b
	part.Series = nil
	for _, s := range b.Series {
		if topics.PartitionOf(s.Labels.Key(testSeed, b.Signal), 2) == partition {
			part.Series = append(part.Series, s)
		}
	}
	return &part
}

// TestTwoEpochs: a topic is followed by one with twice as many partitions, while two machines hold all
// partitions of both at the same time, flush and ship all the time, and are lost with their disks. Rows of
// the same times come again and again, in both topics. The last value of each time is what the bucket has in
// the end, and every line once, in order. The labels of most series were sent to the first topic alone.
func TestTwoEpochs(t *testing.T) {
	const records = 300
	r := newTwoEpochs(t)
	random := rand.New(rand.NewPCG(3, 4))
	begin := time.Now().Add(-10 * time.Minute).UnixNano()
	pushes := worldtest.Pushes{Tenants: []string{"a", "b"}, Series: 4, Rows: 3, Time: func() int64 { return begin + int64(random.IntN(40))*15e9 }}
	for n := range 9 {
		pushes.Labels = append(pushes.Labels, model.LabelsOf("__name__", "x", "n", string(rune('a'+n))))
	}
	done := make(chan struct{})
	var machines sync.WaitGroup
	var lives, stale, closed, waited atomic.Int64
	for range 2 {
		c := r.catalog()
		for _, place := range []struct {
			epoch     uint64
			partition int32
		}{{1, 0}, {2, 0}, {2, 1}} {
			machines.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					if place.epoch == 2 && !r.ended.Load() {
						time.Sleep(time.Millisecond)
						continue
					}
					o := r.optionsOf(c, place.epoch, place.partition)
					if rand.IntN(2) == 0 {
						o.Drain = 1 // the machine is lost
					}
					p, err := Open(t.Context(), o)
					switch waits := (*WaitsError)(nil); {
					case errors.Is(err, ErrClosed):
						closed.Add(1)
						return
					case errors.As(err, &waits):
						waited.Add(1)
						time.Sleep(5 * time.Millisecond)
						continue
					case errors.Is(err, catalog.ErrStale): // the other machine has closed it meanwhile
						continue
					case err != nil:
						t.Error(err)
						return
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200))*time.Millisecond)
					err = p.Run(ctx)
					cancel()
					lives.Add(1)
					switch {
					case errors.Is(err, catalog.ErrStale):
						stale.Add(1)
					case err != nil && o.Drain > 1 && !errors.Is(err, ErrClosed):
						t.Error(err)
					}
					if err := p.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	want, known := worldtest.Content{}, map[string]bool{}
	for n := range 2 * records {
		b := pushes.Batch(random, []model.Signal{model.Metrics, model.Logs}[n%2])
		want.Push(b)
		if n < records {
			for _, s := range b.Series {
				known[b.Tenant+b.Signal.String()+string(s.Labels)] = true
			}
			r.log.append(0, b, true)
		} else {
			for p := range int32(2) {
				if part := split(b, p); len(part.Series) > 0 {
					all := true
					for _, s := range part.Series {
						all = all && known[b.Tenant+b.Signal.String()+string(s.Labels)]
					}
					r.second.append(int(p), part, !all)
				}
			}
		}
		if n == records-1 {
			r.end()
		}
		if n%40 == 0 { // the machines get time
			before := lives.Load()
			r.waitFor("further lives", func() bool { return lives.Load() > before || t.Failed() })
		}
	}
	r.waitFor("the end of the first topic", func() bool { return closed.Load() == 2 || t.Failed() })
	close(done)
	machines.Wait()
	c := r.catalog()
	for partition := range int32(2) {
		p := r.open(r.optionsOf(c, 2, partition))
		stop := r.running(p)
		r.waitFor("the ship of the last record", func() bool { return p.Shipped() == r.second.end(partition) })
		if err := errors.Join(stop(), p.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if d := want.Diff(r.content(c)); d != "" {
		t.Error(d)
	}
	if stale.Load() == 0 {
		t.Errorf("%d lives, and none was overtaken: the test has tried nothing", lives.Load())
	}
	t.Logf("%d lives, %d overtaken, %d waited", lives.Load(), stale.Load(), waited.Load())
}

// TestEndOfTopic: a partition is closed although its topic is gone, if the bucket has all of it. If it has
// not, it is not closed, and its children wait. Nothing is shipped after the close.
func TestEndOfTopic(t *testing.T) {
	r := newTwoEpochs(t)
	c := r.catalog()
	gone := errors.New("the topic is gone")
	deleted := func(o Options) Options {
		o.open = func(context.Context, kafka.ReaderOptions) (reader, error) { return nil, gone }
		o.sealedEnd = func(context.Context, int64, *int32) (int64, error) { return 0, kafka.ErrNoTopic }
		return o
	}
	r.log.append(0, sample("t", 0, 1, 1, 1), true)
	p := r.open(r.optionsOf(c, 1, 0))
	stop := r.running(p)
	r.waitFor("a ship", func() bool { return p.Shipped() == 1 })
	if err := errors.Join(stop(), p.Close()); err != nil {
		t.Fatal(err)
	}
	r.log.append(0, sample("t", 0, 1, 2, 1), true)
	r.end()
	if _, err := Open(t.Context(), deleted(r.optionsOf(c, 1, 0))); !errors.Is(err, gone) {
		t.Errorf("a topic was deleted too early: got %v", err)
	}
	_, err := Open(t.Context(), r.optionsOf(c, 2, 1))
	if waits := (*WaitsError)(nil); !errors.As(err, &waits) || waits.Parent != 0 || waits.Epoch != 1 || !errors.Is(err, model.ErrTransient) {
		t.Errorf("a child of a partition that is not closed: got %v", err)
	}
	p = r.open(r.optionsOf(c, 1, 0))
	r.ended.Store(false) // the process does not know of the second epoch
	stop = r.running(p)
	r.waitFor("the last ship", func() bool { return p.Shipped() == 2 })
	if err := errors.Join(stop(), p.Close()); err != nil {
		t.Fatal(err)
	}
	r.ended.Store(true)
	var gap *kafka.GapError
	r.epochs[1].BeforeEnds[0] = 1
	lost := r.optionsOf(c, 1, 0)
	lost.sealedEnd = func(context.Context, int64, *int32) (int64, error) { return 1, nil }
	if _, err := Open(t.Context(), lost); !errors.As(err, &gap) || gap.From != 1 || gap.To != 1 {
		t.Errorf("the bucket has more than the topic had at its end: got %v", err)
	}
	r.epochs[1].BeforeEnds[0] = 2
	for range 2 {
		if _, err := Open(t.Context(), deleted(r.optionsOf(c, 1, 0))); !errors.Is(err, ErrClosed) {
			t.Errorf("the bucket has all of the topic: got %v", err)
		}
	}
	at := c.Progress(topics.Node(0), 1)
	if !at.Closed || at.To != 2 {
		t.Errorf("progress is %+v", at)
	}
	_, err = c.Ship(t.Context(), catalog.Ship{Covered: []catalog.Coverage{{Node: at.Node, Epoch: 1, From: 3, To: 3}}}, nil)
	if !errors.Is(err, catalog.ErrStale) {
		t.Errorf("a ship after the close: got %v", err)
	}
	child := r.open(r.optionsOf(c, 2, 1))
	if err := child.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOwnerOfTwoEpochs: a partition that has ended is ready and takes no part in readiness any more, and
// those that follow begin by themselves.
func TestOwnerOfTwoEpochs(t *testing.T) {
	r := newTwoEpochs(t)
	c := r.catalog()
	own := func(epoch uint64) *Owner {
		w := Own(OwnerOptions{Topic: r.epochs[epoch-1].Topic, Of: func(partition int32, _ int) Options { return r.optionsOf(c, epoch, partition) }})
		t.Cleanup(w.Stop)
		return w
	}
	state := func(w *Owner, partition int32) (s State) {
		w.Each(func(number int32, _ *Partition, state State, _ error) {
			if number == partition {
				s = state
			}
		})
		return s
	}
	r.log.append(0, sample("t", 0, 1, 1, 1), true)
	old, next := own(1), own(2)
	old.Hold(0)
	r.waitFor("the first topic", func() bool { return state(old, 0) == Ready })
	next.Hold(0, 1)
	r.waitFor("the wait", func() bool { return state(next, 0) == Waiting && state(next, 1) == Waiting })
	if err := next.Ready(); err == nil {
		t.Error("partitions that wait are ready")
	}
	r.second.append(1, sample("t", 1, 2, 1, 2), true)
	r.end()
	r.waitFor("the end of the first topic", func() bool { return state(old, 0) == Closed })
	r.waitFor("the second topic", func() bool { return state(next, 0) == Ready && state(next, 1) == Ready })
	if err := errors.Join(old.Ready(), next.Ready()); err != nil {
		t.Error(err)
	}
	old.Release(t.Context(), 0)
	r.waitFor("the old partition to go", func() bool { return state(old, 0) == "" })
}

// TestAfterTheEnd: a broker has acknowledged a record after the end that the next epoch records, since it had
// compared the size of the record before. The partition is closed with the record, whether it comes before
// the partition is opened, while it runs, during its last ship, or before the end was known. While the leader
// cannot be asked, the partition is not closed.
func TestAfterTheEnd(t *testing.T) {
	a, b := sample("t", 0, 1, 1e9, 1), sample("t", 0, 1, 2e9, 2)
	for _, comes := range []string{"before it opens", "while it runs", "during the last ship", "before the end is known"} {
		t.Run(comes, func(t *testing.T) {
			r := newTwoEpochs(t)
			c := r.catalog()
			want := worldtest.Content{}
			want.Push(a)
			want.Push(b)
			late := sync.OnceFunc(func() { r.log.append(0, b, true) })
			r.log.append(0, a, true)
			r.epochs[1].BeforeEnds = []int64{1}
			o := r.optionsOf(c, 1, 0)
			asked := 0
			o.sealedEnd = func(context.Context, int64, *int32) (int64, error) {
				if asked++; asked == 1 {
					return 0, model.ErrTransient
				}
				end := r.log.end(0)
				if comes == "during the last ship" { // it comes right after the question
					late()
				}
				return end, nil
			}
			switch comes {
			case "before it opens":
				late()
				r.ended.Store(true)
			case "while it runs":
				r.ended.Store(true)
				time.AfterFunc(20*time.Millisecond, late)
				o.sealedEnd = func(context.Context, int64, *int32) (int64, error) {
					late()
					return r.log.end(0), nil
				}
			case "during the last ship":
				r.ended.Store(true)
			case "before the end is known":
				late()
				p := r.open(r.optionsOf(c, 1, 0))
				stop := r.running(p)
				r.waitFor("a ship after the end", func() bool { return p.Shipped() == 2 })
				if err := errors.Join(stop(), p.Close()); err != nil {
					t.Fatal(err)
				}
				r.ended.Store(true)
				if _, err := Open(t.Context(), o); !errors.Is(err, model.ErrTransient) {
					t.Errorf("the leader cannot be asked: got %v", err)
				}
			}
			var err error
			for lives := 0; !errors.Is(err, ErrClosed); lives++ {
				if c.Covered(topics.Node(0), 1).Closed || lives == 5 {
					t.Fatalf("%d lives, and the last ended with %v", lives, err)
				}
				var p *Partition
				if p, err = Open(t.Context(), o); err == nil {
					err = p.Run(t.Context())
					if e := p.Close(); e != nil {
						t.Fatal(e)
					}
				}
			}
			if at := c.Covered(topics.Node(0), 1); !at.Closed || at.To != 2 {
				t.Errorf("progress is %+v", at)
			}
			if d := want.Diff(r.content(c)); d != "" {
				t.Error(d)
			}
		})
	}
}

// threeEpochs are the first topic, one that is lost, and one that was adopted after the loss.
func threeEpochs(t *testing.T, firstEnds int64) (r *rig, options func(c *catalog.Catalog, epoch uint64) Options, logs []*topicLog) {
	r = newRig(t, 1)
	logs = []*topicLog{r.log, newTopicLog(1), newTopicLog(1)}
	r.epochs = append(r.epochs,
		topics.Epoch{Number: 2, Topic: "lost", ID: "Z0QiPvSMSIWJiSmPzyJFCg", Partitions: 1, Begins: []int64{0}, Begun: 2, BeforeEnds: []int64{firstEnds}},
		topics.Epoch{Number: 3, Topic: "adopted", ID: "xvYGCJJ0Tk2lYbyDuMyDGw", Partitions: 1, Begins: []int64{0}, Begun: 3, BeforeLost: true})
	return r, func(c *catalog.Catalog, epoch uint64) Options {
		o := r.options(c, 0)
		o.Epoch = epoch
		o.End = func(epoch uint64, partition int32) (int64, bool) { return topics.End(r.epochs, epoch, partition) }
		o.open, o.sealedEnd = logs[epoch-1].open, logs[epoch-1].sealedEnd(0)
		return o
	}, logs
}

// TestGivenUpOverOpen: a topic that was given up has followed one that is not closed. The next one waits for
// that, and the later value wins.
func TestGivenUpOverOpen(t *testing.T) {
	r, options, logs := threeEpochs(t, 1)
	at := time.Now().Add(-5 * time.Minute).UnixNano()
	want := worldtest.Content{}
	for i, b := range []*worldtest.Batch{sample("t", 0, 1, at, 1), nil, sample("t", 0, 1, at, 2)} {
		if b != nil {
			logs[i].append(0, b, true)
			want.Push(b)
		}
	}
	c := r.catalog()
	_, err := Open(t.Context(), options(c, 3))
	if waits := (*WaitsError)(nil); !errors.As(err, &waits) || waits.Epoch != 1 {
		t.Fatalf("the first topic is not closed: got %v", err)
	}
	if !c.Covered(topics.Node(0), 2).Closed {
		t.Error("a partition that was given up is not closed")
	}
	if all := c.GivenUp(); len(all) != 1 || all[0].Skip != topics.Lost(&catalog.Coverage{Node: topics.Node(0), Epoch: 2}) {
		t.Errorf("the bucket says that these are given up: %+v", all)
	}
	p := r.open(options(c, 1))
	if err := p.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = r.open(options(c, 3))
	stop := r.running(p)
	r.waitFor("the last topic", func() bool { return p.Shipped() == 1 })
	if err := errors.Join(stop(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if d := want.Diff(r.content(c)); d != "" {
		t.Error(d)
	}
}

// TestGivenUpShipsNoMore: a process holds rows of a topic that is given up, and sleeps. Once the next topic
// has begun, it ships no more, and its older value does not win.
func TestGivenUpShipsNoMore(t *testing.T) {
	r, options, logs := threeEpochs(t, 0)
	at := time.Now().Add(-5 * time.Minute).UnixNano()
	logs[1].append(0, sample("t", 0, 1, at, 1), true)
	first := r.catalog()
	if _, err := Open(t.Context(), options(first, 1)); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	o := options(r.catalog(), 2)
	o.ShipEvery = time.Hour
	o.Head.Windows.Window, o.Head.Windows.Grace, o.Head.Windows.LateAge = 24*time.Hour, 24*time.Hour, 24*time.Hour
	sleeper := r.open(o)
	stop := r.running(sleeper)
	r.waitFor("the row", func() bool { return sleeper.Next() == 1 })
	newer, want := sample("t", 0, 1, at, 2), worldtest.Content{}
	logs[2].append(0, newer, true)
	want.Push(newer)
	p := r.open(options(first, 3))
	stopLast := r.running(p)
	r.waitFor("the last topic", func() bool { return p.Shipped() == 1 })
	if err := errors.Join(stopLast(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Ship(t.Context()); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("a ship of what was given up: got %v", err)
	}
	if err := stop(); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("the life of what was given up: got %v", err)
	}
	if err := sleeper.Close(); err != nil {
		t.Fatal(err)
	}
	if d := want.Diff(r.content(r.catalog())); d != "" {
		t.Error(d)
	}
}
