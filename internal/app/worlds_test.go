package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/test/objectstores"
	"github.com/shaledb/shale/test/tiertest"
)

var (
	worldSeed = flag.Uint64("world-seed", 0, "the one world to try; 0: as many as -worlds says")
	worlds    = flag.Int("worlds", 12, "random worlds that are tried")
	storeName = flag.String("store", "", "the object store of test/objectstores that the worlds use; empty: a folder")
	tierNames = flag.String("tiers", "", "small+memcached: the worlds have little memory and a cache in memcached; an SSD they have anyway, half of the time")
)

// TestWorlds pushes the same random batches into several engines that differ in everything that must not
// matter: memory, and the moments of flushes, merges, ships, compactions (also by another process), restarts
// and power cuts. In between, each deletes rows, takes some deletions back, and changes the rules of
// retention both ways. They must return the results that a list of the pushes, deletions and rules gives. A
// failure names the seed of its world.
func TestWorlds(t *testing.T) {
	seeds := []uint64{*worldSeed}
	if *worldSeed == 0 {
		seeds = seeds[:0]
		n := *worlds / racetest.Fewer
		if testing.Short() {
			n -= n / 3 // make stores has some more
		}
		for range max(1, n) {
			seeds = append(seeds, rand.Uint64())
		}
	}
	places, caches := objectstores.NewPlaces(t, *storeName), tiertest.Start(t, *tierNames)
	for _, seed := range seeds {
		w := newWorld(rand.New(rand.NewPCG(seed, 0)))
		for variant := range uint64(4) {
			if err := w.run(t, places.New(), caches.New(), rand.New(rand.NewPCG(seed, variant+1)), variant > 1); err != nil {
				t.Fatalf("variant %d: %v\nagain: go test ./internal/app -run TestWorlds -world-seed %d", variant, err, seed)
			}
		}
	}
}

// world is a list of pushes, and the time that passes before each.
type world struct {
	pushes []*worldtest.Batch
	passes []time.Duration
}

const worldBegin = int64(1_700_000_000 * time.Second)

func newWorld(r *rand.Rand) *world {
	w := &world{}
	now := worldBegin
	p := worldtest.Pushes{Tenants: []string{"t0", "t1", "t2"}, Series: 12, Rows: 7, Time: func() int64 { return randomTime(r, now) }}
	labels := worldtest.NumberedLabels(1+r.IntN(40), 4)
	for range 5 + r.IntN(60) {
		pass := time.Duration(r.Int64N(int64(20 * time.Minute)))
		if r.IntN(8) == 0 {
			pass = time.Duration(r.Int64N(int64(6 * time.Hour)))
		}
		now += int64(pass)
		signal := []model.Signal{model.Metrics, model.Logs}[r.IntN(2)]
		if p.Labels = labels; r.IntN(4) == 0 {
			p.Labels = worldtest.OddLabels(signal)
		}
		w.passes = append(w.passes, pass)
		w.pushes = append(w.pushes, p.Batch(r, signal))
	}
	return w
}

// randomTime is mostly now, to the second so that times meet, sometimes late, and now and then ancient.
func randomTime(r *rand.Rand, now int64) int64 {
	at := now - r.Int64N(120)*int64(time.Second)
	switch r.IntN(20) {
	case 0:
		at -= r.Int64N(72) * int64(time.Hour)
	case 1:
		at = r.Int64N(100) * int64(time.Second)
	}
	return at - at%int64(time.Second)
}

// question is a request with the answer that it must get.
type question struct {
	tenant string
	signal model.Signal
	family model.Family
	name   string // "": all
	rg     model.TimeRange
	needle string // of lines: what they must contain, "": anything
}

func randomQuestion(r *rand.Rand, now int64) question {
	q := question{tenant: fmt.Sprint("t", r.IntN(3)), signal: model.Metrics, family: model.Samples, rg: model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}}
	switch r.IntN(6) {
	case 0, 1, 2:
		q.signal, q.family = model.Logs, model.Text
		q.needle = []string{"", "", "needle", "started", "nowhere"}[r.IntN(5)]
	case 3:
		q.family = model.Exemplars
	}
	if r.IntN(2) == 0 {
		q.name = fmt.Sprint("m", r.IntN(4))
	}
	if r.IntN(2) == 0 {
		q.rg.Min = now - r.Int64N(int64(80*time.Hour))
		q.rg.Max = q.rg.Min + r.Int64N(int64(10*time.Hour))
	}
	return q
}

// result returns what must come back.
func (q question) result(truth worldtest.Content) worldtest.Content {
	return truth.Where(func(id worldtest.ID, x worldtest.Row) bool {
		return id.Tenant == q.tenant && id.Signal == q.signal && id.Family == q.family && q.rg.Contains(x.At) &&
			(q.name == "" || string(model.Labels(id.Labels).Get("__name__")) == q.name) && strings.Contains(x.Blob, q.needle)
	})
}

// id names the rows of a series that the question asks for.
func (q question) id(l model.Labels) worldtest.ID {
	return worldtest.ID{Tenant: q.tenant, Signal: q.signal, Labels: string(l), Family: q.family}
}

// ask puts a question to the engine.
func ask(e *Engine, q question) (worldtest.Content, error) {
	req := &model.Request{Tenant: q.tenant, Signal: q.signal, Family: q.family, Range: q.rg}
	if q.name != "" {
		req.Matchers = []model.Matcher{{Name: "__name__", Op: model.MatchEqual, Value: q.name, Match: func(v string) bool { return v == q.name }}}
	}
	if q.family == model.Text {
		return askText(e, q, req)
	}
	ctx := context.Background()
	set, err := e.Querier().Select(ctx, req)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	got := worldtest.Content{}
	var rows model.Rows
	for set.Next(ctx) {
		rows.Reset()
		if err := set.AppendRows(ctx, &rows); err != nil {
			return nil, err
		}
		id := q.id(set.Labels())
		for i := range rows.Times {
			got[id] = append(got[id], worldtest.RowAt(&rows, i))
		}
	}
	return got, set.Err()
}

// askText puts a question for lines, once without the lines, whose series must be among those with them.
func askText(e *Engine, q question, req *model.Request) (worldtest.Content, error) {
	if q.needle != "" {
		req.TextFilter = &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: q.needle}}}}}
	}
	got, series := worldtest.Content{}, map[string]bool{}
	err := eachLine(e, req, func(l model.Labels, read readtest.Line) {
		x := worldtest.LineRow(read.Time, &model.Line{Text: []byte(read.Text), Metadata: read.Metadata})
		if series[string(l)] = true; strings.Contains(x.Blob, q.needle) {
			got[q.id(l)] = append(got[q.id(l)], x)
		}
	})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	set, err := e.Querier().Select(ctx, req)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for set.Next(ctx) {
		delete(series, string(set.Labels()))
	}
	if len(series) > 0 {
		return nil, fmt.Errorf("%d series have lines and are not selected", len(series))
	}
	return got, errors.Join(set.Err(), set.Close())
}

// run lives through the world with random settings and at random moments does what must not matter. With
// rules, rows expire.
func (w *world) run(t *testing.T, place objectstores.Place, caches *tiertest.Set, r *rand.Rand, rules bool) error {
	now := worldBegin
	mem := vfs.NewCrashableMem()
	o := EngineOptions{
		DataDir: crashDir, Node: "n", MemoryBytes: int64(16+r.IntN(3)*100) << 20, Idle: true, Now: func() int64 { return now },
		Write: write.Limits{MaxFuture: 10 * time.Minute},
	}
	o.MemoryBytes = caches.Memory(o.MemoryBytes)
	cached := r.IntN(2) == 0
	open := func() (*Engine, error) {
		b, err := place.Open(mem)
		if err != nil {
			return nil, err
		}
		o.FS, o.Bucket = mem, b
		if rules && (o.Retention == nil || r.IntN(2) == 0) {
			o.Retention = randomRules(r)
		}
		if cached { // its content lives through restarts and power cuts
			o.SSD = &ssd.Options{FS: mem, Dir: "/ssd", MaxBytes: ssd.MinBytes, Limits: ssd.Limits{WritesPerDay: 1000}}
		}
		o.Memcached, o.Registerer = caches.Memcached(), caches.Start()
		o.Windows.Window = []time.Duration{2 * time.Hour, 5 * time.Minute, 24 * time.Hour}[r.IntN(3)]
		return OpenEngine(context.Background(), o)
	}
	e, err := open()
	if err != nil {
		return err
	}
	defer func() {
		if e != nil {
			_ = e.Close()
		}
	}()
	truth := &history{}
	for i := range w.pushes {
		now += int64(w.passes[i])
		truth.passed(o.Retention, now)
		if err := pushBatch(e.Path(), w.pushes[i]); err != nil {
			return fmt.Errorf("push %d: %w", i, err)
		}
		truth.push(w.pushes[i])
		for range r.IntN(3) {
			switch r.IntN(15) {
			case 0, 1, 2:
				err = e.Flush()
			case 3, 4:
				_, err = e.head.Work(context.Background())
			case 5:
				err = e.Ship()
			case 6:
				err = e.Compact(context.Background())
			case 7: // restart
				err, e = e.Close(), nil
				if err == nil {
					e, err = open()
				}
			case 8: // power cut
				clone := mem.CrashClone(vfs.CrashCloneCfg{})
				err, e = e.Close(), nil
				if mem = clone; err == nil {
					e, err = open()
				}
			case 9, 10:
				err = truth.delete(e, r)
			case 11:
				err = truth.cancel(e, r)
			case 12:
				err = compactElsewhere(e)
			case 13:
				err = dropExpired(e)
			}
			if err != nil {
				return fmt.Errorf("after push %d: %w", i, err)
			}
		}
		for range r.IntN(2) {
			if err := truth.check(e, randomQuestion(r, now)); err != nil {
				return fmt.Errorf("after push %d: %w", i, err)
			}
		}
	}
	if err := truth.checkAll(e); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if err := truth.carryOut(e, &now); err != nil {
		return err
	}
	if err := truth.checkAll(e); err != nil {
		return fmt.Errorf("once all deletions are carried out: %w", err)
	}
	t.Logf("%d pushes and deletions that stayed, %d deletions in all, %d changes of rules", len(truth.events), truth.deletions, max(0, len(truth.eras)-1))
	last := e
	e = nil
	if err := last.Close(); err != nil {
		return err
	}
	checkFolder(t, mem)
	return nil
}

func check(e *Engine, truth worldtest.Content, q question) error {
	got, err := ask(e, q)
	if err != nil {
		return err
	}
	if d := q.result(truth).Diff(got); d != "" {
		return fmt.Errorf("%+v:\n%s", q, d)
	}
	return nil
}

func pushBatch(p *write.Path, in *worldtest.Batch) error {
	b := p.Batch(in.Tenant, in.Signal)
	defer p.Recycle(b)
	in.AppendTo(b, p.Seed())
	res, err := p.Push(context.Background(), b)
	if err == nil && len(res.Rejected) > 0 {
		err = fmt.Errorf("rejected: %v", res.Rejected)
	}
	return err
}
