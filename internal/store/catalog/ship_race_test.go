package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
)

// logAuditor notes every ship that is created.
type logAuditor struct {
	bucket.Bucket
	mu    sync.Mutex
	ships []*commit
}

func (a *logAuditor) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	created, err := a.Bucket.PutIfAbsent(ctx, name, data)
	if id, e := recordOf(name); created && e == nil && shipNumber(id) > 0 {
		r, e := parseRecord(name, data)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.ships = append(a.ships, r); e != nil {
			err = errors.Join(err, e)
		}
	}
	return created, err
}

// raceClock is the time of all processes. It stands still while one of them ships: a commit that takes a day
// gives up (commitWithin), which the test cannot wait for.
type raceClock struct {
	sync.RWMutex
	now atomic.Int64
}

// racer is one of several processes that all believe that all journals are theirs.
type racer struct {
	t       *testing.T
	b       *fault.Bucket
	clock   *raceClock
	random  *rand.Rand
	c       *Catalog
	results map[string]int
}

const racePartitions = 4

// live ships until the race is over. The process is killed now and then, and another one takes its place.
func (w *racer) live(over *atomic.Bool) {
	for !over.Load() {
		c, err := Open(ctx, w.b, Options{Now: w.clock.now.Load})
		if err != nil {
			w.expect(err)
			continue
		}
		w.c = c
		believed := map[string]uint64{}
		for !over.Load() {
			if !w.ship(believed) {
				break // killed
			}
		}
		for _, result := range []string{shipWon, shipConflict, shipLostAck, shipStale} {
			w.results[result] += shipsOf(c, result)
		}
	}
}

// ship ships some batches of some journals, and reports whether the process lives on. believed is how far it
// takes the journals to be shipped.
func (w *racer) ship(believed map[string]uint64) bool {
	var s Ship
	for _, p := range w.random.Perm(racePartitions)[:1+w.random.IntN(2)] {
		node := fmt.Sprintf("p%d", p)
		if believed[node] == 0 || w.random.IntN(4) > 0 {
			believed[node] = w.c.Covered(node, 1).To
		}
		from := believed[node] + 1
		to := from + uint64(w.random.IntN(5)) - 1
		s.Covered = append(s.Covered, Coverage{Node: node, Epoch: 1, From: from, To: to})
		if to >= from {
			b := block("", int64(from), int64(to))
			b.ID = BlockID(node, 1, b.Signal, b.Group, b.Range, from, to, 0)
			b.Node, b.Epoch, b.SeqLo, b.SeqHi, b.Sources = node, 1, from, to, nil
			s.Blocks = append(s.Blocks, b)
		}
	}
	w.b.Clear()
	kill := w.random.IntN(20) == 0
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch w.random.IntN(4) {
	case 0:
		w.b.Add(fault.Rule{Kind: fault.LostAck, Op: fault.PutIfAbsent, Prefix: RecordPrefix + shipPrefix, Times: 1})
	case 1:
		w.b.Add(fault.Rule{Kind: fault.Kind(w.random.IntN(2)), Skip: w.random.IntN(20), Times: 1 + w.random.IntN(3)})
	}
	if kill {
		time.AfterFunc(time.Duration(w.random.IntN(int(3*time.Millisecond))), cancel)
	}
	for {
		w.clock.RLock()
		_, err := w.c.Ship(ctx, s, func(ctx context.Context, id string) error {
			data := "block " + id
			return w.b.Put(ctx, ObjectName(id), strings.NewReader(data), int64(len(data)))
		})
		w.clock.RUnlock()
		w.expect(err)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			for _, v := range s.Covered {
				believed[v.Node] = w.c.Covered(v.Node, 1).To
			}
			return !kill
		case errors.Is(err, ErrStale):
			return !kill
		}
	}
}

// expect fails the test on an error that no process should see.
func (w *racer) expect(err error) {
	if err != nil && !errors.Is(err, model.ErrTransient) && !errors.Is(err, ErrStale) && !errors.Is(err, context.Canceled) {
		w.t.Error(err)
	}
}

// collectBeside merges and collects, and lets hours pass, for shipRaceFor. Where others leave it little time,
// it goes on until a record is collected.
func collectBeside(t *testing.T, b bucket.Bucket, clock *raceClock) (done Collected) {
	began := time.Now()
	c, err := Open(ctx, b, Options{Now: clock.now.Load})
	if err != nil {
		t.Error(err)
		return done
	}
	random := rand.New(rand.NewPCG(9, 9))
	for n := 0; time.Since(began) < shipRaceFor || done.Records == 0 && time.Since(began) < 20*shipRaceFor; n++ {
		clock.Lock()
		clock.now.Add(int64(random.IntN(12)) * int64(time.Hour))
		clock.Unlock()
		err := c.Refresh(ctx)
		if live := c.Live(); err == nil && len(live) >= 2 {
			err = raceMerge(c, live[:2+random.IntN(min(len(live)-1, 20))], n)
		}
		some, collectErr := c.Collect(ctx, everyDay)
		done.Blocks, done.Records, done.Orphans = done.Blocks+some.Blocks, done.Records+some.Records, done.Orphans+some.Orphans
		if err = errors.Join(err, collectErr); err != nil && !errors.Is(err, ErrReplaced) {
			t.Error(err)
		}
	}
	return done
}

// raceMerge replaces blocks by one.
func raceMerge(c *Catalog, inputs []Block, n int) error {
	m := Block{ID: fmt.Sprintf("m%d", n), Level: Joined, Range: model.TimeRange{Min: 1, Max: 2}, OrderLo: inputs[0].OrderLo, Signal: model.Metrics}
	m.KeyMax = model.Key{Hi: 9}
	for _, b := range inputs {
		m.OrderLo, m.OrderHi = min(m.OrderLo, b.OrderLo), max(m.OrderHi, b.OrderHi)
		m.Sources = append(m.Sources, b.Sources...)
	}
	done, err := c.Uploading(ctx, m.ID)
	if err != nil {
		return err
	}
	defer done()
	if err := c.b.Put(ctx, ObjectName(m.ID), strings.NewReader("m"), 1); err != nil {
		return err
	}
	return c.Replace(ctx, ids(inputs), []Block{m})
}

// TestShipRace lets five processes ship the same journals at once. Responses are lost, requests fail,
// processes are killed, and a sixth one merges and collects. Afterwards the ships are numbered without gaps,
// each journal was shipped from its beginning without gaps and overlaps, and every batch is visible once.
func TestShipRace(t *testing.T) {
	audit := &logAuditor{Bucket: memory(t)}
	clock := &raceClock{}
	clock.now.Store(1e18)
	var over atomic.Bool
	var wg sync.WaitGroup
	racers := make([]*racer, 5)
	for i := range racers {
		racers[i] = &racer{t: t, b: fault.New(audit), clock: clock, random: rand.New(rand.NewPCG(uint64(i), 7)), results: map[string]int{}}
		wg.Go(func() { racers[i].live(&over) })
	}
	var collected Collected
	wg.Go(func() {
		defer over.Store(true)
		collected = collectBeside(t, audit, clock)
	})
	wg.Wait()
	results := map[string]int{}
	for _, w := range racers {
		for result, n := range w.results {
			results[result] += n
		}
	}
	t.Logf("%d ships; attempts: %v; collected: %+v", len(audit.ships), results, collected)
	for _, result := range []string{shipWon, shipConflict, shipLostAck, shipStale} {
		if results[result] == 0 {
			t.Errorf("no attempt ended as %s", result)
		}
	}
	if collected.Records == 0 {
		t.Error("no record was collected")
	}
	covered := checkLog(t, audit.ships)
	c, err := Open(ctx, audit, Options{Now: clock.now.Load})
	if err != nil {
		t.Fatal(err)
	}
	checkVisible(t, audit, c, covered)
}

// checkLog checks all ships ever created, and returns how far each journal is covered.
func checkLog(t *testing.T, ships []*commit) map[journal]uint64 {
	t.Helper()
	slices.SortFunc(ships, func(a, b *commit) int { return cmp.Compare(a.ship, b.ship) })
	covered, blocks := map[journal]uint64{}, map[string]bool{}
	for i, r := range ships {
		if r.ship != uint64(i)+1 {
			t.Fatalf("the ship number %d is %s", i+1, r.id)
		}
		for _, v := range r.covered {
			if v.From != covered[v.Journal()]+1 {
				t.Errorf("%s ships %s from %d, after %d", r.id, v.Node, v.From, covered[v.Journal()])
			}
			covered[v.Journal()] = v.To
		}
		for _, b := range r.blocks {
			if blocks[b.ID] {
				t.Errorf("%s ships %s once more", r.id, b.ID)
			}
			blocks[b.ID] = true
		}
	}
	return covered
}

// checkVisible expects every batch to be in one visible block, and every visible block to have an object.
func checkVisible(t *testing.T, b bucket.Bucket, c *Catalog, covered map[journal]uint64) {
	t.Helper()
	sources := map[journal][]Source{}
	objects := objectsBelow(t, b, BlockPrefix)
	for _, b := range c.Live() {
		if _, found := slices.BinarySearch(objects, ObjectName(b.ID)); !found {
			t.Errorf("%s has no object", b.ID)
		}
		for _, s := range b.Sources {
			j := journal{Node: s.Node, Epoch: s.Epoch}
			sources[j] = append(sources[j], s)
		}
	}
	for j, to := range covered {
		slices.SortFunc(sources[j], func(a, b Source) int { return cmp.Compare(a.SeqLo, b.SeqLo) })
		next := uint64(1)
		for _, s := range sources[j] {
			if s.SeqLo != next {
				t.Errorf("%s: a block begins with batch %d, expected %d", j.Node, s.SeqLo, next)
			}
			next = s.SeqHi + 1
		}
		if next != to+1 {
			t.Errorf("%s: batches are visible up to %d, and covered up to %d", j.Node, next-1, to)
		}
	}
	if len(c.lost)+len(c.strays) > 0 {
		t.Errorf("lost are %v, strays %v", lostOf(c), c.strays)
	}
}
