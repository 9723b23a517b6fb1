package head

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testSeed model.KeySeed = 42

// bucketOfBlocks keeps shipped blocks in memory, and fails when it is told to.
type bucketOfBlocks struct {
	fs     vfs.FS
	blocks map[string]*part.Reader // by what makes a block's id
	fail   bool
}

func (b *bucketOfBlocks) Ship(ctx context.Context, blk Block) error {
	if b.fail {
		return fmt.Errorf("%w: the bucket is away", model.ErrTransient)
	}
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
	b.blocks[fmt.Sprint(blk.Meta.Signal, blk.Meta.SeqLo, blk.Meta.SeqHi, blk.Meta.Range, blk.Cut)] = r
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
	t       *rapid.T
	fs      *vfs.MemFS
	now     int64
	seq     uint64
	head    *Head
	bucket  *bucketOfBlocks
	pending []pendingBatch // applied since the last flush: what a journal would replay
	want    map[seriesID]map[int64]uint64
	labels  map[seriesID]model.Labels
}

type seriesID struct {
	tenant string
	labels string
}

type pendingBatch struct {
	seq uint64
	b   *model.Batch
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, fs: vfs.NewCrashableMem(), now: int64(1_700_000_000 * time.Second),
		want: make(map[seriesID]map[int64]uint64), labels: make(map[seriesID]model.Labels),
	}
	w.bucket = &bucketOfBlocks{fs: w.fs, blocks: make(map[string]*part.Reader)}
	w.open()
	return w
}

func (w *world) open() {
	w.bucket.fs = w.fs
	h, err := Open(context.Background(), Options{
		FS: w.fs, Dir: "/head", Seed: testSeed, Node: "n", KnownBytes: 8 << 20, Shipper: w.bucket,
		Now: func() int64 { return w.now },
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

// push applies a batch with the labels that the write path would send along.
func (w *world) push() {
	tenant := rapid.SampledFrom([]string{"a", "b"}).Draw(w.t, "tenant")
	b := &model.Batch{Tenant: tenant, Signal: model.Metrics}
	n := rapid.IntRange(1, 30).Draw(w.t, "series")
	byKey := make(map[model.Key]model.Labels)
	for range n {
		l := model.LabelsOf("__name__", fmt.Sprintf("m%d", rapid.IntRange(0, 3).Draw(w.t, "name")),
			"job", fmt.Sprint(rapid.IntRange(0, 2).Draw(w.t, "job")), "i", fmt.Sprint(rapid.IntRange(0, 20).Draw(w.t, "i")))
		k := l.Key(testSeed, model.Metrics)
		byKey[k] = l
		id := seriesID{tenant, string(l)}
		rows := w.want[id]
		if rows == nil {
			rows = make(map[int64]uint64)
			w.want[id], w.labels[id] = rows, l
		}
		for range rapid.IntRange(1, 3).Draw(w.t, "rows") {
			age := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour, 3 * time.Hour, 30 * time.Hour}).Draw(w.t, "age")
			at := w.now - int64(age) - rapid.Int64Range(0, 5).Draw(w.t, "ms")*1e6
			v := rapid.SampledFrom([]uint64{0, 1 << 63, model.StaleNaN, math.Float64bits(1.5), 0x7ff8000000000bad, math.Float64bits(7)}).Draw(w.t, "v")
			b.Samples.Append(at, v, 0)
			if old, ok := rows[at]; !ok || v != model.StaleNaN || old == model.StaleNaN {
				rows[at] = v
			}
		}
		b.EndSeries(k)
	}
	fresh, err := w.head.Resolve(b, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, i := range fresh {
		b.Labels.Append(i, byKey[b.Keys[i]])
	}
	w.seq++
	w.pending = append(w.pending, pendingBatch{w.seq, b})
	w.head.Apply(w.seq, b)
}

// check compares everything that the head and the bucket give with what was pushed.
func (w *world) check() {
	for _, tenant := range []string{"a", "b"} {
		got := make(map[seriesID]map[int64]uint64)
		req := &model.Request{
			Tenant: tenant, Signal: model.Metrics, Range: model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64},
			Quota: new(model.Quota), Cost: new(model.Cost),
		}
		cs, err := w.head.Select(context.Background(), req)
		if err != nil {
			w.t.Fatal(err)
		}
		w.addBlocks(tenant, got)
		for _, c := range cs {
			var last model.Key
			for c.Next(context.Background()) {
				var rows model.Rows
				if err := c.AppendRows(context.Background(), &rows); err != nil {
					w.t.Fatal(err)
				}
				if c.Key().Compare(last) <= 0 {
					w.t.Fatalf("key %s after %s", c.Key(), last)
				}
				last = c.Key()
				merge(got, seriesID{tenant, string(c.Labels())}, &rows)
			}
			if err := c.Err(); err != nil {
				w.t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				w.t.Fatal(err)
			}
		}
		for id, rows := range w.want {
			if id.tenant == tenant && !maps.Equal(rows, got[id]) {
				w.t.Fatalf("%s %s: got %x, want %x", tenant, w.labels[id], got[id], rows)
			}
			delete(got, id)
		}
		if len(got) > 0 {
			w.t.Fatalf("%d series too many", len(got))
		}
	}
}

// addBlocks adds the rows of shipped blocks, the older ones first.
func (w *world) addBlocks(tenant string, got map[seriesID]map[int64]uint64) {
	blocks := slices.SortedFunc(maps.Values(w.bucket.blocks), func(a, b *part.Reader) int {
		return int(a.Meta().SeqHi) - int(b.Meta().SeqHi)
	})
	for _, r := range blocks {
		s := r.Stream()
		for s.Next(context.Background()) {
			if s.Tenant() == tenant {
				merge(got, seriesID{tenant, string(s.Labels())}, &s.Rows().Samples)
			}
		}
		if err := s.Err(); err != nil {
			w.t.Fatal(err)
		}
	}
}

func merge(got map[seriesID]map[int64]uint64, id seriesID, rows *model.Rows) {
	if got[id] == nil {
		got[id] = make(map[int64]uint64)
	}
	for i, t := range rows.Times {
		if old, ok := got[id][t]; !ok || rows.Values[i] != model.StaleNaN || old == model.StaleNaN {
			got[id][t] = rows.Values[i]
		}
	}
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestRandomWorlds pushes, flushes, merges, ships, crashes and restarts in any order. After each step everything that
// was pushed must be there, bit for bit, and nothing else.
func TestRandomWorlds(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"push":  func(t *rapid.T) { w.t = t; w.push() },
			"flush": func(t *rapid.T) { w.t = t; w.must(w.head.Flush(ctx)) },
			"merge": func(t *rapid.T) { w.t = t; _, err := w.head.mergeOnce(ctx); w.must(err) },
			"sort": func(t *rapid.T) {
				w.t = t
				if in := w.head.group(model.Metrics, dataPart, young); len(in) > 0 {
					w.must(w.head.sortIntoWindows(ctx, model.Metrics, in))
				}
			},
			"ship": func(t *rapid.T) { w.t = t; w.must(w.head.Ship(ctx)) },
			"idle": func(t *rapid.T) {
				w.t = t
				w.must(w.head.known.advance(0)) // what gets no row before the next one is forgotten
				if in := w.head.group(model.Metrics, labelPart, young); len(in) > 0 {
					w.must(w.head.mergeLabels(ctx, model.Metrics, in))
				}
			},
			"failing bucket": func(t *rapid.T) {
				w.t, w.bucket.fail = t, true
				_ = w.head.Ship(ctx)
				w.bucket.fail = false
			},
			"time": func(t *rapid.T) {
				w.now += int64(rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 5 * time.Hour, -3 * time.Hour}).Draw(t, "passes"))
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
