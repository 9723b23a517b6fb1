package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket/fault"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
	"github.com/shaledb/shale/internal/store/deletion"
)

// history is what was acknowledged, in its order.
type history struct {
	events []event
	eras   []era // in which rules of retention held
	// deletions counts those that were acknowledged, also if they were cancelled later.
	deletions int
}

// event is a push or a deletion.
type event struct {
	push     *worldtest.Batch
	deletion deletion.Deletion
	text     string // that deleted lines contain; "": all rows
}

func (h *history) push(b *worldtest.Batch) { h.events = append(h.events, event{push: b}) }

// takes reports whether the event deletes a row.
func (ev *event) takes(id worldtest.ID, x worldtest.Row) bool {
	d := &ev.deletion
	if ev.push != nil || d.Tenant != id.Tenant || d.Signal != id.Signal || !d.Range.Contains(x.At) || !d.Matches(model.Labels(id.Labels)) {
		return false
	}
	if ev.text == "" {
		return true
	}
	l, err := model.ParseLine([]byte(x.Blob))
	return err == nil && strings.Contains(string(l.Text), ev.text)
}

// content returns the rows that no later deletion takes.
func (h *history) content() worldtest.Content {
	c := worldtest.Content{}
	for i, ev := range h.events {
		if ev.push == nil {
			continue
		}
		for _, s := range ev.push.Series {
			id := worldtest.ID{Tenant: ev.push.Tenant, Signal: ev.push.Signal, Labels: string(s.Labels)}
			for _, x := range s.Rows {
				if !slices.ContainsFunc(h.events[i:], func(d event) bool { return d.takes(id, x) }) {
					c.Add(id, x)
				}
			}
		}
	}
	return c
}

// delete deletes random rows, and sometimes so that it can be taken back.
func (h *history) delete(e *Engine, r *rand.Rand) error {
	ev := event{deletion: deletion.Deletion{
		Tenant: fmt.Sprint("t", r.IntN(3)), Signal: []model.Signal{model.Metrics, model.Logs}[r.IntN(2)], Range: everything, Matchers: []deletion.Matcher{{}},
	}}
	d := &ev.deletion
	if r.IntN(2) == 0 {
		d.Matchers = []deletion.Matcher{{Name: "__name__", Op: model.MatchOp(r.IntN(4)), Value: fmt.Sprint("m", r.IntN(4))}}
	}
	if r.IntN(2) == 0 {
		d.Range.Min = e.now() - r.Int64N(int64(20*time.Hour))
		d.Range.Max = d.Range.Min + r.Int64N(int64(10*time.Hour))
	}
	if r.IntN(3) == 0 {
		d.NotBefore = e.now() + r.Int64N(int64(30*time.Hour))
	}
	if d.Signal == model.Logs && r.IntN(2) == 0 {
		ev.text = []string{"needle", "started", "a long line 1"}[r.IntN(3)]
		// The selector of the filter is not looked at: the matchers say the same.
		d.Filter = fmt.Sprintf(`{a="b"} |= %q`, ev.text)
	}
	id, err := e.Delete(context.Background(), *d)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if d.Request = id; d.Compile(nil) != nil {
		return errors.New("the deletion does not compile")
	}
	h.events, h.deletions = append(h.events, ev), h.deletions+1
	return nil
}

// cancel takes a random deletion back, if that is still possible.
func (h *history) cancel(e *Engine, r *rand.Rand) error {
	var some []int
	for i, ev := range h.events {
		if ev.push == nil {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return nil
	}
	i := some[r.IntN(len(some))]
	d := h.events[i].deletion
	err := e.CancelDeletion(context.Background(), d.Tenant, d.Request, d.Signal, false)
	switch {
	case err == nil:
		h.events = slices.Delete(h.events, i, i+1)
		if err := e.CancelDeletion(context.Background(), d.Tenant, d.Request, d.Signal, true); !errors.Is(err, errNoDeletion) {
			return fmt.Errorf("cancelled once more: %v", err)
		}
		return nil
	case d.NotBefore > e.now():
		return fmt.Errorf("cancel: %w", err)
	case !errors.Is(err, errTooLate) && !errors.Is(err, errNoDeletion):
		return err
	}
	return nil
}

// carryOut ships and compacts until every deletion is carried out.
func (h *history) carryOut(e *Engine, now *int64) error {
	*now += int64(32 * time.Hour)
	for range 3 {
		if err := errors.Join(e.Ship(), e.Compact(context.Background())); err != nil {
			return err
		}
	}
	for tenant := range 3 {
		for _, d := range e.Deletions(fmt.Sprint("t", tenant), 0) {
			if !d.Processed || d.Left > 0 {
				return fmt.Errorf("deletion %d of %s is not carried out: %d blocks are left", d.Generation, d.Query(), d.Left)
			}
		}
	}
	return nil
}

// compactElsewhere compacts the bucket as another process does, with a catalogue of its own.
func compactElsewhere(e *Engine) error {
	ctx := context.Background()
	c, err := catalog.Open(ctx, e.o.Bucket, catalog.Options{Now: e.o.Now, Filters: lineFilter})
	if err != nil {
		return err
	}
	seed, err := catalog.Seed(ctx, e.o.Bucket)
	if err != nil {
		return err
	}
	comp, err := compact.New(compact.Options{Catalog: c, Bucket: e.o.Bucket, FS: vfs.NewMem(), Dir: "/elsewhere", Seed: seed, Now: e.o.Now, Retention: e.rules})
	if err != nil {
		return err
	}
	if _, err = comp.RunOnce(ctx); err != nil {
		return err
	}
	return e.catalog.Refresh(ctx) // as the compactor of e does every few minutes
}

// TestDeletionCrash cuts the power before and after every sync of a run that writes, deletes, flushes, ships
// and compacts. Whatever was acknowledged holds afterwards: rows that a deletion took stay hidden, also once
// everything is shipped, and all others are there.
func TestDeletionCrash(t *testing.T) {
	mem := vfs.NewCrashableMem()
	now := int64(1_700_000_000 * time.Second)
	type snapshot struct {
		fs      *vfs.MemFS
		sure    history // what was acknowledged
		begun   event   // what was not, but may have happened
		pending bool
		at      int64
	}
	var mu sync.Mutex
	var snapshots []snapshot
	var sure history
	var begun *event
	step, syncs := 1, 0
	if testing.Short() {
		step = 29
	}
	fs := &syncFS{FS: mem, hook: func() {
		mu.Lock()
		defer mu.Unlock()
		if syncs++; syncs%step != 0 {
			return
		}
		s := snapshot{fs: mem.CrashClone(vfs.CrashCloneCfg{}), sure: history{events: slices.Clone(sure.events)}, at: now}
		if begun != nil {
			s.begun, s.pending = *begun, true
		}
		snapshots = append(snapshots, s)
	}}
	e := openOn(t, fs, &now)
	do := func(ev event, run func() error) {
		t.Helper()
		mu.Lock()
		begun = &ev
		mu.Unlock()
		if err := run(); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		begun, sure.events = nil, append(sure.events, ev)
		mu.Unlock()
	}
	r := rand.New(rand.NewPCG(7, 7))
	p := worldtest.Pushes{Tenants: []string{"t0"}, Series: 4, Rows: 4, Labels: worldtest.NumberedLabels(6, 3), Time: func() int64 { return now - r.Int64N(60)*int64(time.Second) }}
	for i := range 16 {
		for _, s := range []model.Signal{model.Metrics, model.Logs} {
			b := p.Batch(r, s)
			do(event{push: b}, func() error { return pushBatch(e.Path(), b) })
		}
		if i%3 == 2 {
			ev := event{deletion: deletion.Deletion{
				Tenant: "t0", Signal: []model.Signal{model.Metrics, model.Logs}[i%2], Range: everything,
				Matchers: []deletion.Matcher{{Name: "__name__", Op: model.MatchEqual, Value: fmt.Sprint("m", i%3)}},
			}}
			must(t, ev.deletion.Compile(nil))
			do(ev, func() error {
				_, err := e.Delete(context.Background(), ev.deletion)
				return err
			})
		}
		now += int64(30 * time.Minute)
		switch i % 5 {
		case 1:
			must(t, e.Flush())
		case 3:
			must(t, e.Ship())
		case 4:
			must(t, e.Compact(context.Background()))
		}
	}
	must(t, e.Close())
	for i := range snapshots {
		s := &snapshots[i]
		e := openOn(t, s.fs, &s.at)
		for _, stage := range []string{"after the start", "after a ship"} {
			for _, q := range []question{
				{tenant: "t0", signal: model.Metrics, family: model.Samples, rg: everything}, {tenant: "t0", signal: model.Metrics, family: model.Exemplars, rg: everything},
				{tenant: "t0", signal: model.Logs, family: model.Text, rg: everything},
			} {
				err := check(e, s.sure.content(), q)
				if err != nil && s.pending {
					may := history{events: append(slices.Clone(s.sure.events), s.begun)}
					if check(e, may.content(), q) == nil {
						s.sure, s.pending, err = may, false, nil
					}
				}
				if err != nil {
					t.Fatalf("power cut %d of %d, %s: %v", i, len(snapshots), stage, err)
				}
			}
			must(t, e.Ship())
		}
		must(t, e.Close())
	}
}

// TestDeletionWithoutBucket: while the bucket fails, a deletion is not acknowledged, but is carried out once
// the bucket is back, also by another run of the program, and once only.
func TestDeletionWithoutBucket(t *testing.T) {
	mem, now := vfs.NewMem(), int64(1_700_000_000*time.Second)
	b, err := bucketfs.New(mem, "/bucket")
	must(t, err)
	faulty := fault.New(b)
	open := func() *Engine {
		e, err := OpenEngine(context.Background(), EngineOptions{
			FS: mem, DataDir: crashDir, Bucket: faulty, Node: "n", MemoryBytes: 64 << 20, Idle: true, Now: func() int64 { return now },
		})
		must(t, err)
		return e
	}
	for _, kind := range []fault.Kind{fault.Fail, fault.LostAck} {
		e := open()
		h := &history{}
		r := rand.New(rand.NewPCG(1, uint64(kind)))
		p := worldtest.Pushes{Tenants: []string{"t0"}, Series: 4, Rows: 4, Labels: worldtest.NumberedLabels(4, 2), Time: func() int64 { return now }}
		for range 5 {
			batch := p.Batch(r, model.Metrics)
			must(t, pushBatch(e.Path(), batch))
			h.push(batch)
		}
		before := len(e.catalog.Requests("t0"))
		faulty.Add(fault.Rule{Kind: kind, Op: fault.PutIfAbsent})
		d := deletion.Deletion{Tenant: "t0", Signal: model.Metrics, Range: everything, Matchers: []deletion.Matcher{{}}}
		if _, err := e.Delete(context.Background(), d); !errors.Is(err, model.ErrTransient) {
			t.Fatalf("acknowledged: %v", err)
		}
		faulty.Clear()
		must(t, e.Close())
		e = open()
		q := question{tenant: "t0", signal: model.Metrics, family: model.Samples, rg: everything}
		must(t, check(e, worldtest.Content{}, q))
		must(t, e.Ship())
		must(t, check(e, worldtest.Content{}, q))
		if got := len(e.catalog.Requests("t0")) - before; got != 1 {
			t.Fatalf("%d deletions of one request", got)
		}
		now += int64(time.Hour)
		must(t, e.Close())
	}
}

// TestDeletedLabels: the labels of a series that a deletion has taken whole are not listed any more, neither
// before nor after its rows are in the bucket.
func TestDeletedLabels(t *testing.T) {
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		mem, now := vfs.NewMem(), int64(1_700_000_000*time.Second)
		e := openOn(t, mem, &now)
		push := func(name string) {
			t.Helper()
			row := worldtest.Float(now, 1)
			if signal == model.Logs {
				row = worldtest.LineRow(now, &model.Line{Text: []byte("secret of " + name)})
			}
			must(t, pushBatch(e.Path(), &worldtest.Batch{Tenant: "t0", Signal: signal, Series: []worldtest.Series{{Labels: model.LabelsOf("__name__", name, "only_"+name, "x"), Rows: []worldtest.Row{row}}}}))
		}
		expect := func(when string, want ...string) {
			t.Helper()
			req := &model.Request{Tenant: "t0", Signal: signal, Range: everything, Quota: new(model.Quota), Cost: new(model.Cost)}
			values, _, err := e.Querier().LabelValues(context.Background(), req, "__name__", 0)
			must(t, err)
			names, _, err := e.Querier().LabelNames(context.Background(), req, 0)
			must(t, err)
			n, err := e.Querier().Cardinality(context.Background(), req, "")
			must(t, err)
			if !slices.Equal(values, want) || len(names) != len(want)+min(1, len(want)) || int(n.Series) != len(want) {
				t.Fatalf("%s %s: %v, %v, %d series", signal, when, values, names, n.Series)
			}
		}
		push("a")
		push("b")
		expect("at first", "a", "b")
		d := deletion.Deletion{Tenant: "t0", Signal: signal, Range: model.TimeRange{Min: now, Max: now}, Matchers: []deletion.Matcher{{Name: "__name__", Value: "a"}}}
		if signal == model.Logs {
			d.Filter = `{__name__="a"} |= "secret"`
		}
		_, err := e.Delete(context.Background(), d)
		must(t, err)
		expect("in buffers", "b")
		must(t, e.Flush())
		expect("in parts", "b")
		push("c")
		must(t, e.Ship())
		expect("in the bucket", "b", "c")
		now += int64(48 * time.Hour)
		must(t, e.Compact(context.Background()))
		expect("compacted", "b", "c")
		push("a")
		expect("written again", "a", "b", "c")
		must(t, e.Close())
	}
}

// TestDeletedStatistics: what is counted from the statistics of chunks does not count deleted lines.
func TestDeletedStatistics(t *testing.T) {
	mem, now := vfs.NewMem(), int64(1_700_000_000*time.Second)
	e := openOn(t, mem, &now)
	l := model.LabelsOf("app", "web")
	s := worldtest.Series{Labels: l}
	for i := range 100 {
		text := []string{"keep", "drop"}[i%2]
		s.Rows = append(s.Rows, worldtest.LineRow(now-100+int64(i), &model.Line{Text: []byte(text)}))
	}
	must(t, pushBatch(e.Path(), &worldtest.Batch{Tenant: "t0", Signal: model.Logs, Series: []worldtest.Series{s}}))
	_, err := e.Delete(context.Background(), deletion.Deletion{
		Tenant: "t0", Signal: model.Logs, Range: everything, Matchers: []deletion.Matcher{{Name: "app", Value: "web"}}, Filter: `{app="web"} |= "drop"`,
	})
	must(t, err)
	counts := func(when string) {
		t.Helper()
		ctx := context.Background()
		set, err := e.Querier().SelectText(ctx, &model.Request{Tenant: "t0", Signal: model.Logs, Range: everything})
		must(t, err)
		defer set.Close()
		rows, bytes := 0, int64(0)
		for set.Next(ctx) {
			chunks, err := set.Chunks(ctx, nil)
			must(t, err)
			for _, c := range chunks {
				rows, bytes = rows+c.Rows, bytes+c.Bytes
			}
		}
		must(t, set.Err())
		if rows != 50 || bytes != 200 {
			t.Fatalf("%s: %d lines of %d bytes", when, rows, bytes)
		}
		seen := map[string]int{}
		must(t, eachLine(e, &model.Request{Tenant: "t0", Signal: model.Logs, Range: everything}, func(_ model.Labels, x readtest.Line) { seen[x.Text]++ }))
		if !maps.Equal(seen, map[string]int{"keep": 50}) {
			t.Fatalf("%s: %v", when, seen)
		}
	}
	counts("in a buffer")
	must(t, e.Flush())
	counts("in a part")
	must(t, e.Ship())
	counts("in a block")
	must(t, e.Compact(context.Background()))
	counts("compacted")
	if live := e.catalog.Live(); len(live) != 1 || live[0].Lines != 50 {
		t.Fatalf("%+v", live)
	}
	must(t, e.Close())
}
