package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

// worldSize is how many writers there are, how often each ships, and how many requests fail or lose their
// responses and how many writers are killed in one run.
type worldSize struct{ writers, ships, faults, kills int }

// A small world is a bucket and a few writers, each of which believes that a journal is its own. Each of
// their requests for records waits until the world lets it go on. So a run is a list of choices, and all
// lists of choices are tried: every order of the requests, with a lost response, a request that fails, and a
// writer that is killed, at every place. A writer that waits while others ship is a zombie.
type smallWorld struct {
	choices []int // what was chosen at each step
	options []int // of how many
	script  []int // the choices to repeat; after them, the first option is taken

	mu      sync.Mutex
	pending []*smallOp
	alive   int

	faults, kills int // how many there may still be
}

// smallOp is a request that waits.
type smallOp struct {
	writer int
	name   string
	put    bool
	then   chan fate
}

// fate is what happens to a request.
type fate int

const (
	run     fate = iota
	lostAck      // it is done, and the response is lost
	failed       // it is not done
	killed       // it is not done, and the writer ends
)

var errKilled = fmt.Errorf("%w: killed", context.Canceled)

// smallGate is the bucket as a writer sees it.
type smallGate struct {
	bucket.Bucket
	w      *smallWorld
	writer int
	dead   bool
}

func (g *smallGate) ask(op, name string, put bool) fate {
	if g.dead {
		return killed
	}
	o := &smallOp{g.writer, op + " " + name, put, make(chan fate)}
	g.w.mu.Lock()
	g.w.pending = append(g.w.pending, o)
	g.w.mu.Unlock()
	v := <-o.then
	g.dead = v == killed
	return v
}

func (g *smallGate) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	if !strings.HasPrefix(name, RecordPrefix+shipPrefix) {
		return g.Bucket.PutIfAbsent(ctx, name, data)
	}
	switch g.ask("create", name, true) {
	case killed:
		return false, errKilled
	case failed:
		return false, fmt.Errorf("%w: request failed", model.ErrTransient)
	case lostAck:
		_, err := g.Bucket.PutIfAbsent(ctx, name, data)
		return false, errors.Join(err, fmt.Errorf("%w: response lost", model.ErrTransient))
	}
	return g.Bucket.PutIfAbsent(ctx, name, data)
}

func (g *smallGate) Get(ctx context.Context, name string) ([]byte, error) {
	if strings.HasPrefix(name, RecordPrefix+shipPrefix) && g.ask("get", name, false) == killed {
		return nil, errKilled
	}
	return g.Bucket.Get(ctx, name)
}

func (g *smallGate) List(ctx context.Context, prefix string, fn func(string, int64) error) error {
	if strings.HasPrefix(prefix, RecordPrefix) && g.ask("list", prefix, false) == killed {
		return errKilled
	}
	return g.Bucket.List(ctx, prefix, fn)
}

// step lets one request go on, as the script says or in the first of the ways that there are.
func (w *smallWorld) step() {
	w.mu.Lock()
	slices.SortFunc(w.pending, func(a, b *smallOp) int {
		if a.writer != b.writer {
			return a.writer - b.writer
		}
		return strings.Compare(a.name, b.name)
	})
	type option struct {
		at int
		v  fate
	}
	var options []option
	for i, o := range w.pending {
		options = append(options, option{i, run})
		if o.put && w.faults > 0 {
			options = append(options, option{i, lostAck}, option{i, failed})
		}
		if w.kills > 0 {
			options = append(options, option{i, killed})
		}
	}
	n := 0
	if at := len(w.choices); at < len(w.script) {
		n = w.script[at]
	}
	w.choices, w.options = append(w.choices, n), append(w.options, len(options))
	chosen := options[n]
	switch chosen.v {
	case lostAck, failed:
		w.faults--
	case killed:
		w.kills--
	}
	o := w.pending[chosen.at]
	w.pending = slices.Delete(w.pending, chosen.at, chosen.at+1)
	w.mu.Unlock()
	o.then <- chosen.v
}

// waits reports whether requests wait, and whether writers live.
func (w *smallWorld) waits() (requests, writers bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) > 0, w.alive > 0
}

// play lets writers ship, each as often as it says, until all have ended.
func (w *smallWorld) play(t *testing.T, writers, ships int) {
	audit := &logAuditor{Bucket: memory(t)}
	var acknowledged []uint64
	gates := make([]*smallGate, writers)
	for i := range gates {
		gates[i] = &smallGate{Bucket: audit, w: w, writer: i}
	}
	w.alive = writers
	for i, g := range gates {
		go func() {
			to := smallWriter(t, g, i, ships)
			w.mu.Lock()
			defer w.mu.Unlock()
			acknowledged = append(acknowledged, to...)
			w.alive--
		}()
	}
	for {
		time.Sleep(pauseMost) // those that pause go on
		synctest.Wait()
		requests, alive := w.waits()
		if !alive {
			break
		}
		if requests {
			w.step()
		}
	}
	covered := checkLog(t, audit.ships)
	c, err := Open(context.Background(), audit, Options{Now: func() int64 { return 1e18 }})
	if err != nil {
		t.Fatal(err)
	}
	checkVisible(t, audit, c, covered)
	for _, to := range acknowledged {
		if got := covered[journal{Node: "p0", Epoch: 1}]; got < to {
			t.Errorf("batch %d was acknowledged, and the ships cover %d", to, got)
		}
	}
}

// smallWriter takes over the journal from where the bucket covers it, ships, and begins again if another one
// ships. It returns the batches up to which it was told that they are shipped. Writers cut their blocks at
// different batches.
func smallWriter(t *testing.T, b bucket.Bucket, number, ships int) (acknowledged []uint64) {
	c, err := Open(context.Background(), b, Options{Now: func() int64 { return 1e18 }})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	for n := 0; n < ships; n++ {
		from := c.Covered("p0", 1).To + 1
		to := from + uint64(number) // the first writer ships one batch, the second two
		block := block("", int64(from), int64(to))
		block.ID = BlockID("p0", 1, block.Signal, block.Group, block.Range, from, to, 0)
		block.Node, block.Epoch, block.SeqLo, block.SeqHi, block.Sources = "p0", 1, from, to, nil
		s := Ship{Blocks: []Block{block}, Covered: []Coverage{{Node: "p0", Epoch: 1, From: from, To: to}}}
		for {
			_, err := c.Ship(context.Background(), s, func(ctx context.Context, id string) error {
				return b.Put(ctx, ObjectName(id), strings.NewReader("block"), 5)
			})
			if errors.Is(err, model.ErrTransient) && !errors.Is(err, context.Canceled) {
				continue // as a head does, with the same blocks
			}
			switch {
			case err == nil:
				acknowledged = append(acknowledged, to)
			case errors.Is(err, ErrStale):
			case errors.Is(err, context.Canceled):
				return acknowledged
			default:
				t.Error(err)
				return acknowledged
			}
			break
		}
	}
	return acknowledged
}

// nextScript returns the choices of the next run in the order of all runs, or nil after the last one.
func (w *smallWorld) nextScript() []int {
	for at := len(w.choices) - 1; at >= 0; at-- {
		if w.choices[at]+1 < w.options[at] {
			return append(slices.Clone(w.choices[:at]), w.choices[at]+1)
		}
	}
	return nil
}

// TestSmallWorlds runs every order of the requests of few writers, against the whole catalogue. In each, the
// ships must be numbered without gaps, cover the journal without gaps and overlaps, make each batch visible
// once, and have what was acknowledged.
func TestSmallWorlds(t *testing.T) {
	racetest.SkipSerial(t) // one writer runs at a time
	for _, world := range smallWorlds {
		t.Run(fmt.Sprintf("%+v", world), func(t *testing.T) {
			runs, longest := 0, 0
			for script := []int{}; script != nil; runs++ {
				w := &smallWorld{script: script, faults: world.faults, kills: world.kills}
				synctest.Test(t, func(t *testing.T) { w.play(t, world.writers, world.ships) })
				if t.Failed() {
					t.Fatalf("with the choices %v", w.choices)
				}
				longest = max(longest, len(w.choices))
				script = w.nextScript()
			}
			t.Logf("%d runs of up to %d requests", runs, longest)
		})
	}
}
