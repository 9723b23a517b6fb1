package head

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/part"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testSeed model.KeySeed = 42

// bucketOfBlocks keeps shipped blocks in memory, and fails when it is told to.
type bucketOfBlocks struct {
	fs     vfs.FS
	blocks map[string]*part.Reader // by what makes a block's id
	order  []string                // in which they came: of two blocks the later one counts, as in the catalogue
	fail   bool
	// covered is that of the last ship.
	covered uint64
	ships   int
	// rest has for each ship whether it left rows of what it covers in the head.
	rest []bool
}

func (b *bucketOfBlocks) Ship(ctx context.Context, s *Ship) error {
	if b.fail {
		return fmt.Errorf("%w: the bucket is away", model.ErrTransient)
	}
	if s.Covered < b.covered && s.Covered != 0 {
		return fmt.Errorf("%w: the ship covers %d batches, and the last one covered %d", model.ErrInvalid, s.Covered, b.covered)
	}
	b.covered = max(b.covered, s.Covered)
	b.rest = append(b.rest, s.Rest)
	b.ships++
	for i := range s.Blocks {
		if err := b.add(ctx, &s.Blocks[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bucketOfBlocks) add(ctx context.Context, blk *Block) error {
	f, err := b.fs.Open(blk.File)
	if err != nil {
		return err
	}
	defer f.Close()
	data := make([]byte, blk.Size)
	if _, err := io.ReadFull(f, data); err != nil {
		return err
	}
	r, err := part.Open(ctx, memFile(data), blk.Size)
	if err != nil {
		return err
	}
	if err := part.Check(ctx, r); err != nil {
		return err
	}
	name := fmt.Sprint(blk.Meta.Signal, blk.Meta.SeqLo, blk.Meta.SeqHi, blk.Meta.Range, blk.Cut)
	if b.blocks[name] == nil {
		b.order = append(b.order, name)
	}
	b.blocks[name] = r
	return nil
}

type memFile []byte

func (m memFile) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(p, m[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// world is a head and what it must hold.
type world struct {
	t          *rapid.T
	fs         *vfs.MemFS
	now        int64
	seq        uint64
	knownBytes int64
	head       *Head
	bucket     *bucketOfBlocks
	pending    []pendingBatch // applied since the last flush: what a journal would replay
	want       worldtest.Content
}

type pendingBatch struct {
	seq uint64
	b   *model.Batch
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, fs: vfs.NewCrashableMem(), now: int64(1_700_000_000 * time.Second), want: worldtest.Content{},
		// The smaller set has room for a dozen series.
		knownBytes: rapid.SampledFrom([]int64{8 << 20, 500}).Draw(t, "known"),
	}
	w.bucket = &bucketOfBlocks{fs: w.fs, blocks: make(map[string]*part.Reader)}
	w.open()
	return w
}

func (w *world) open() {
	w.bucket.fs = w.fs
	h, err := Open(context.Background(), Options{
		FS: w.fs, Dir: "/head", Seed: testSeed, Node: "n", KnownBytes: w.knownBytes, Shipper: w.bucket,
		Windows: Windows{Window: rapid.SampledFrom([]time.Duration{2 * time.Hour, 2 * time.Hour, 5 * time.Minute, 24 * time.Hour}).Draw(w.t, "window")},
		Now:     func() int64 { return w.now },
		Truncate: func(covered uint64) error {
			for len(w.pending) > 0 && w.pending[0].seq <= covered {
				w.pending = w.pending[1:]
			}
			return nil
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.head = h
	for _, p := range w.pending {
		if p.seq > h.Covered() {
			h.Apply(p.seq, p.b)
		}
	}
	if err := h.rebuildKnown(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// age draws a time in the past.
func (w *world) age() int64 {
	age := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour, 3 * time.Hour, 30 * time.Hour}).Draw(w.t, "age")
	return w.now - int64(age) - rapid.Int64Range(0, 5).Draw(w.t, "ms")*1e6
}

var (
	worldMetrics = append(worldtest.NumberedLabels(80, 4), worldtest.OddLabels(model.Metrics)...)
	worldLogs    = append(worldtest.NumberedLabels(10, 3), worldtest.OddLabels(model.Logs)...)
)

// push applies a batch with the labels that the write path would send along.
func (w *world) push(signal model.Signal) {
	p := worldtest.Pushes{Tenants: []string{"a", "b"}, Labels: worldMetrics, Series: 30, Rows: 3, Time: w.age}
	if signal == model.Logs {
		p.Labels, p.Series, p.Rows = worldLogs, 6, 8
	}
	in := p.Batch(worldtest.Drawn{T: w.t}, signal)
	in.Series = slices.DeleteFunc(in.Series, func(s worldtest.Series) bool { return len(s.Rows) == 0 })
	b := &model.Batch{Tenant: in.Tenant, Signal: signal}
	in.AppendTo(b, testSeed)
	fresh, err := w.head.Resolve(b, nil)
	w.must(err)
	for _, i := range fresh {
		b.Labels.Append(i, in.Series[i].Labels)
	}
	w.want.Push(in)
	w.seq++
	w.pending = append(w.pending, pendingBatch{w.seq, b})
	w.head.Apply(w.seq, b)
}

// check compares everything that the head and the bucket give with what was pushed.
func (w *world) check() {
	for _, tenant := range []string{"a", "b"} {
		got := worldtest.Content{}
		// The head comes after the bucket, as it is newer, and is pinned before.
		var cursors []model.Cursor
		for _, f := range model.PointFamilies() {
			req := everything(tenant)
			req.Family = f
			cs, err := w.head.Source(nil).Select(context.Background(), req)
			w.must(err)
			cursors = append(cursors, cs...)
		}
		text, err := w.head.Source(nil).SelectText(context.Background(), logsOf(tenant))
		w.must(err)
		w.bucket.addTo(tenant, got)
		for _, c := range cursors {
			w.must(addCursor(tenant, c, got))
		}
		for _, c := range text {
			w.must(addText(tenant, c, got))
		}
		want := w.want.Where(func(id worldtest.ID, _ worldtest.Row) bool { return id.Tenant == tenant })
		if d := want.Diff(got); d != "" {
			w.t.Fatal(d)
		}
	}
}

func everything(tenant string) *model.Request {
	return &model.Request{
		Tenant: tenant, Signal: model.Metrics, Range: model.Always(),
		Quota: new(model.Quota), Cost: new(model.Cost),
	}
}

// addCursor adds the rows of a cursor of samples or exemplars.
func addCursor(tenant string, c model.Cursor, got worldtest.Content) error {
	ctx := context.Background()
	var last model.Key
	for c.Next(ctx) {
		var rows model.Rows
		if err := c.AppendRows(ctx, &rows); err != nil {
			return errors.Join(err, c.Close())
		}
		if c.Key().Compare(last) <= 0 {
			return fmt.Errorf("key %s after %s", c.Key(), last)
		}
		if rows.Len() == 0 || !slices.IsSorted(rows.Times) {
			return fmt.Errorf("rows at %v", rows.Times)
		}
		last = c.Key()
		got.AddRows(worldtest.ID{Tenant: tenant, Signal: model.Metrics, Labels: string(c.Labels())}, &rows)
	}
	return errors.Join(c.Err(), c.Close())
}

// addText adds the lines of a cursor, oldest first.
func addText(tenant string, c model.TextCursor, got worldtest.Content) error {
	ctx := context.Background()
	var last model.Key
	for c.Next(ctx) {
		if c.Key().Compare(last) <= 0 {
			return fmt.Errorf("key %s after %s", c.Key(), last)
		}
		last = c.Key()
		chunks, err := c.Chunks(ctx, nil)
		if err != nil {
			return err
		}
		slices.SortStableFunc(chunks, func(a, b model.TextChunk) int { return cmp.Compare(a.Order, b.Order) })
		id := worldtest.ID{Tenant: tenant, Signal: model.Logs, Labels: string(c.Labels())}
		var before []worldtest.Row // of the same order
		for i, x := range chunks {
			if i > 0 && x.Order != chunks[i-1].Order {
				before = nil
			}
			var rows model.TextRows
			if err := x.Page.ReadText(ctx, x.Index, model.WantLines|model.WantMetadata, &rows); err != nil {
				return err
			}
			if rows.Len() != x.Rows || rows.Len() == 0 || rows.Times[0] != x.Min || rows.Times[rows.Len()-1] != x.Max {
				return fmt.Errorf("%d rows of %v in a chunk of %d in %v", rows.Len(), rows.Times, x.Rows, x.TimeRange)
			}
			if before, err = addLines(got, id, before, &rows); err != nil {
				return err
			}
			x.Page.Release()
		}
	}
	return errors.Join(c.Err(), c.Close())
}

// addLines adds lines to a series. None may be among those before, and none may be older.
func addLines(got worldtest.Content, id worldtest.ID, before []worldtest.Row, rows *model.TextRows) ([]worldtest.Row, error) {
	for i, at := range rows.Times {
		r := worldtest.TextRowAt(rows, i)
		if slices.Contains(before, r) || len(before) > 0 && before[len(before)-1].At > at {
			return before, fmt.Errorf("the line %s is there already or comes late", r)
		}
		before = append(before, r)
		got.Add(id, r)
	}
	return before, nil
}

// addTo adds the rows of shipped blocks, the older ones first. The blocks have been checked when they came.
func (b *bucketOfBlocks) addTo(tenant string, got worldtest.Content) {
	ctx := context.Background()
	for _, name := range b.order {
		r := b.blocks[name]
		for s, err := range part.All(ctx, r.Stream()) {
			if err != nil {
				panic(err)
			}
			if s.Tenant != tenant {
				continue
			}
			id := worldtest.ID{Tenant: tenant, Signal: r.Meta().Signal, Labels: string(s.Labels)}
			for _, f := range model.PointFamilies() {
				got.AddRows(id, s.Rows.Family(f))
			}
			if err := addRun(got, id, s.Text); err != nil {
				panic(err)
			}
		}
	}
}

// addRun adds the lines of a series of a block; t may be nil.
func addRun(got worldtest.Content, id worldtest.ID, t part.Text) error {
	if t == nil {
		return nil
	}
	ctx := context.Background()
	var before []worldtest.Row
	run := t.Run(ctx, model.Always())
	for run.Next() {
		rows, err := run.Piece().Rows(ctx)
		if err == nil {
			before, err = addLines(got, id, before, rows)
		}
		if err != nil {
			return err
		}
	}
	return run.Err()
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestRandomWorlds pushes, flushes, merges, ships, crashes and restarts in any order. After each step
// everything that was pushed must be there, bit for bit, and nothing else.
func TestRandomWorlds(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"push":  func(t *rapid.T) { w.t = t; w.push(model.Metrics) },
			"lines": func(t *rapid.T) { w.t = t; w.push(model.Logs) },
			"flush": func(t *rapid.T) { w.t = t; w.must(w.head.Flush(ctx)) },
			"merge": func(t *rapid.T) { w.t = t; _, err := w.head.Work(ctx); w.must(err) },
			"sort": func(t *rapid.T) {
				w.t = t
				for _, signal := range []model.Signal{model.Metrics, model.Logs} {
					if in := w.head.group(signal, local.Data, local.Young); len(in) > 0 {
						w.must(w.head.sortIntoWindows(ctx, signal, in))
					}
				}
			},
			"ship": func(t *rapid.T) { w.t = t; w.must(w.head.Ship(ctx)) },
			"idle": func(t *rapid.T) {
				w.t = t
				w.must(w.head.known.Advance(0)) // what gets no row before the next one is forgotten
				for _, signal := range []model.Signal{model.Metrics, model.Logs} {
					if in := w.head.group(signal, local.Labels, local.Young); len(in) > 0 {
						w.must(w.head.mergeLabels(ctx, signal, in))
					}
				}
			},
			"failing bucket": func(t *rapid.T) {
				w.t, w.bucket.fail = t, true
				_ = w.head.Ship(ctx)
				w.bucket.fail = false
			},
			"time": func(t *rapid.T) {
				w.now += int64(rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 5 * time.Hour, 50 * time.Hour, -time.Minute, -3 * time.Hour, -50 * time.Hour}).Draw(t, "passes"))
			},
			"crash": func(t *rapid.T) {
				w.t = t
				w.fs = w.fs.CrashClone(vfs.CrashCloneCfg{})
				w.head.release()
				w.open()
			},
			"restart": func(t *rapid.T) { w.t = t; w.must(w.head.Close()); w.open() },
			"": func(t *rapid.T) {
				w.t = t
				w.check()
			},
		})
		w.must(w.head.Close())
		w.must(Check(ctx, w.fs, "/head"))
	})
}
