package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/deletion"
)

// pair is two engines with folders of their own that share a bucket: two shippers, and two compactors.
type pair struct {
	engines [2]*Engine
	now     atomic.Int64
	mu      sync.Mutex
	truth   history
}

// series returns labels that only one of the engines gets.
func (p *pair) series(i int) (all []model.Labels) {
	for n := range 8 {
		all = append(all, model.LabelsOf("__name__", fmt.Sprint("m", n%4), "node", fmt.Sprint("n", i), "i", fmt.Sprint(n)))
	}
	return all
}

// live writes into an engine, and flushes, ships and compacts, at random.
func (p *pair) live(i int, r *rand.Rand) error {
	e := p.engines[i]
	from := worldtest.Pushes{Tenants: []string{"t0", "t1", "t2"}, Labels: p.series(i), Series: 6, Rows: 5, Time: func() int64 { return randomTime(r, p.now.Load()) }}
	for range 3 + r.IntN(5) {
		b := from.Batch(r, []model.Signal{model.Metrics, model.Logs}[r.IntN(2)])
		if err := pushBatch(e.Path(), b); err != nil {
			return err
		}
		p.mu.Lock()
		p.truth.push(b)
		p.mu.Unlock()
		var err error
		switch r.IntN(6) {
		case 0:
			err = e.Flush()
		case 1:
			err = e.Ship()
		case 2:
			err = e.Compact(context.Background())
		case 3:
			_, err = e.head.Work(context.Background())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// delete deletes the same rows in both engines, as each has a journal of its own.
func (p *pair) delete(r *rand.Rand) error {
	d := deletion.Deletion{Tenant: fmt.Sprint("t", r.IntN(3)), Signal: []model.Signal{model.Metrics, model.Logs}[r.IntN(2)], Range: everything, Matchers: []deletion.Matcher{{}}}
	if r.IntN(4) > 0 {
		d.Matchers = []deletion.Matcher{{Name: "__name__", Op: model.MatchOp(r.IntN(2)), Value: fmt.Sprint("m", r.IntN(4))}}
	}
	if r.IntN(2) == 0 {
		d.Range.Min = p.now.Load() - r.Int64N(int64(20*time.Hour))
		d.Range.Max = d.Range.Min + r.Int64N(int64(10*time.Hour))
	}
	ev := event{deletion: d}
	if d.Signal == model.Logs && r.IntN(2) == 0 {
		ev.text = "needle"
		ev.deletion.Filter = `{a="b"} |= "needle"`
	}
	for _, e := range p.engines {
		if _, err := e.Delete(context.Background(), ev.deletion); err != nil {
			return err
		}
	}
	if err := ev.deletion.Compile(nil); err != nil {
		return err
	}
	p.truth.events, p.truth.deletions = append(p.truth.events, ev), p.truth.deletions+1
	return nil
}

// check compares what the engines return with the truth. An engine sees its own rows, and those of the other
// one that are in the bucket: all of them if shipped says so.
func (p *pair) check(shipped bool) error {
	truth := p.truth.content()
	for i, e := range p.engines {
		if err := e.catalog.Refresh(context.Background()); err != nil {
			return err
		}
		for _, f := range model.Families() {
			for tenant := range 3 {
				q := question{tenant: fmt.Sprint("t", tenant), signal: model.Metrics, family: f, rg: everything}
				if f == model.Text {
					q.signal = model.Logs
				}
				got, err := ask(e, q)
				if err != nil {
					return fmt.Errorf("engine %d: %w", i, err)
				}
				want := q.result(truth)
				if !shipped {
					own := func(id worldtest.ID, _ worldtest.Row) bool {
						return string(model.Labels(id.Labels).Get("node")) == fmt.Sprint("n", i)
					}
					for id, rows := range got {
						for _, x := range rows {
							if !own(id, x) && !p.truth.holds(id, x) {
								return fmt.Errorf("engine %d shows %s of %s, which is deleted or was never written", i, x, id)
							}
						}
					}
					got, want = got.Where(own), want.Where(own)
				}
				if d := want.Diff(got); d != "" {
					return fmt.Errorf("engine %d: %+v:\n%s", i, q, d)
				}
			}
		}
	}
	return nil
}

// holds reports whether a row was written, and not deleted afterwards.
func (h *history) holds(id worldtest.ID, x worldtest.Row) bool {
	for i, ev := range h.events {
		if ev.push == nil || ev.push.Tenant != id.Tenant || ev.push.Signal != id.Signal {
			continue
		}
		for _, s := range ev.push.Series {
			if string(s.Labels) == id.Labels && slices.Contains(s.Rows, x) && !slices.ContainsFunc(h.events[i:], func(d event) bool { return d.takes(id, x) }) {
				return true
			}
		}
	}
	return false
}

// TestTwoShippersAndCompactors: two engines write to one bucket and both compact it, and so does a third
// process, all at once, while rows are deleted. No deleted row is shown, and no other is lost.
func TestTwoShippersAndCompactors(t *testing.T) {
	rounds, worlds := 12, 6
	if testing.Short() {
		rounds, worlds = 6, 1
	}
	for range worlds {
		seed := rand.Uint64()
		if *worldSeed != 0 {
			seed = *worldSeed
		}
		if err := liveAsPair(t, rounds, seed); err != nil {
			t.Fatalf("%v\nagain: go test ./internal/app -run TestTwoShippersAndCompactors -world-seed %d", err, seed)
		}
	}
}

func liveAsPair(t *testing.T, rounds int, seed uint64) (err error) {
	mem := vfs.NewMem()
	r := rand.New(rand.NewPCG(seed, 9))
	p := &pair{}
	p.now.Store(worldBegin)
	for i := range p.engines {
		b, err := bucketfs.New(mem, "/bucket")
		if err != nil {
			return err
		}
		p.engines[i], err = OpenEngine(context.Background(), EngineOptions{
			FS: mem, DataDir: fmt.Sprint("/data", i), Bucket: b, Node: fmt.Sprint("n", i), MemoryBytes: 64 << 20, Idle: true, Now: p.now.Load,
			// Time leaps in this test, and the blocks that a merge or a query reads must stay meanwhile.
			QueryTimeout: 10_000 * time.Hour,
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.engines[i].Close()) }()
	}
	for range rounds {
		p.now.Add(r.Int64N(int64(9 * time.Hour)))
		var done sync.WaitGroup
		errs := make([]error, len(p.engines)+1)
		for i := range p.engines {
			random := rand.New(rand.NewPCG(r.Uint64(), 0))
			done.Go(func() { errs[i] = p.live(i, random) })
		}
		done.Go(func() { errs[len(p.engines)] = compactElsewhere(p.engines[0]) })
		done.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if err := p.deleteMeanwhile(r); err != nil {
			return err
		}
		if err := p.check(false); err != nil {
			return err
		}
	}
	p.now.Add(int64(32 * time.Hour))
	for range 3 {
		for _, e := range p.engines {
			if err := errors.Join(e.Ship(), e.Compact(context.Background())); err != nil {
				return err
			}
		}
	}
	for _, e := range p.engines {
		for tenant := range 3 {
			for _, d := range e.Deletions(fmt.Sprint("t", tenant), 0) {
				if d.Left > 0 {
					return fmt.Errorf("deletion %d of %s is not carried out: %d blocks are left", d.Generation, d.Query(), d.Left)
				}
			}
		}
	}
	t.Logf("%d pushes, %d deletions", len(p.truth.events)-p.truth.deletions, p.truth.deletions)
	return p.check(true)
}

// deleteMeanwhile deletes rows while both engines ship and compact.
func (p *pair) deleteMeanwhile(r *rand.Rand) error {
	var done sync.WaitGroup
	errs := make([]error, len(p.engines))
	for i, e := range p.engines {
		done.Go(func() {
			errs[i] = errors.Join(e.Compact(context.Background()), e.Ship(), e.Compact(context.Background()))
		})
	}
	var err error
	for range r.IntN(3) {
		err = errors.Join(err, p.delete(r))
	}
	done.Wait()
	return errors.Join(append(errs, err)...)
}
