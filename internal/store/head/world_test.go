package head

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
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
	want       map[seriesID]*content
}

type seriesID struct {
	tenant string
	labels string
}

// content is what a series holds.
type content struct {
	samples   map[int64]row
	exemplars []row // each once, in the order of arrival
	lines     []row // likewise
}

// row is a row as a value.
type row struct {
	at, start int64
	kind      model.Kind
	bits      uint64
	blob      string
}

func rowAt(r *model.Rows, i int) row {
	out := row{at: r.Times[i], start: r.Start(i), kind: r.Kind(i)}
	if out.kind == model.KindFloat {
		out.bits = r.Values[i]
	} else {
		out.blob = string(r.Blob(i))
	}
	return out
}

func (r row) appendTo(rows *model.Rows) {
	if r.kind == model.KindFloat {
		rows.Append(r.at, r.bits, r.start)
	} else {
		rows.AppendBlob(r.at, r.kind, []byte(r.blob), r.start)
	}
}

func (r row) stale() bool {
	var rows model.Rows
	r.appendTo(&rows)
	return rows.IsStale(0)
}

// add adds a row by the rule of its family.
func (c *content) add(r row) {
	if r.kind == model.KindText {
		if !slices.Contains(c.lines, r) {
			c.lines = append(c.lines, r)
		}
		return
	}
	if r.kind == model.KindExemplar {
		if !slices.Contains(c.exemplars, r) {
			c.exemplars = append(c.exemplars, r)
		}
		return
	}
	if c.samples == nil {
		c.samples = make(map[int64]row)
	}
	if old, ok := c.samples[r.at]; !ok || !r.stale() || old.stale() {
		c.samples[r.at] = r
	}
}

func (c *content) addAll(rows *model.Rows) {
	for i := range rows.Times {
		c.add(rowAt(rows, i))
	}
}

func (c *content) equal(o *content) bool {
	byTime := func(a, b row) int { return cmp.Compare(a.at, b.at) }
	slices.SortStableFunc(c.exemplars, byTime)
	slices.SortStableFunc(o.exemplars, byTime)
	slices.SortStableFunc(c.lines, byTime)
	slices.SortStableFunc(o.lines, byTime)
	return maps.Equal(c.samples, o.samples) && slices.Equal(c.exemplars, o.exemplars) && slices.Equal(c.lines, o.lines)
}

type pendingBatch struct {
	seq uint64
	b   *model.Batch
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, fs: vfs.NewCrashableMem(), now: int64(1_700_000_000 * time.Second), want: make(map[seriesID]*content),
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

// drawSample draws floats, histograms and stale markers of both.
func drawSample(t *rapid.T, at int64) row {
	r := row{at: at, start: rapid.SampledFrom([]int64{0, 0, at - 1e9, 5}).Draw(t, "start")}
	if rapid.IntRange(0, 2).Draw(t, "kind") > 0 {
		r.bits = rapid.SampledFrom([]uint64{0, 1 << 63, model.StaleNaN, math.Float64bits(1.5), 0x7ff8000000000bad, math.Float64bits(7)}).Draw(t, "v")
		return r
	}
	n := rapid.IntRange(0, 3).Draw(t, "buckets")
	h := model.Histogram{
		Gauge: rapid.Bool().Draw(t, "gauge"), Float: rapid.Bool().Draw(t, "float"), Schema: int32(rapid.IntRange(-4, 8).Draw(t, "schema")),
		Sum: rapid.SampledFrom([]uint64{math.Float64bits(2.5), model.StaleNaN, 0}).Draw(t, "sum"), Count: uint64(n),
	}
	if n > 0 {
		h.PositiveSpans = []model.HistogramSpan{{Offset: 2, Length: uint32(n)}}
		for range n {
			h.Positive = append(h.Positive, rapid.SampledFrom([]uint64{1, 0, 1 << 40}).Draw(t, "bucket"))
		}
	}
	r.kind, r.blob = model.KindHistogram, string(model.AppendHistogram(nil, &h))
	return r
}

func drawExemplar(t *rapid.T, at int64) row {
	return row{at: at, kind: model.KindExemplar, blob: string(model.AppendExemplar(nil, &model.Exemplar{
		Value: 1, Labels: model.LabelsOf("trace_id", rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "trace")),
	}))}
}

// drawLine draws lines that come again, some as large as a page.
func drawLine(t *rapid.T, at int64) row {
	l := model.Line{Text: []byte(rapid.SampledFrom([]string{"", "a", "b", "\x00\xff"}).Draw(t, "text"))}
	if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
		l.Text = []byte(strings.Repeat(fmt.Sprint("a long line ", rapid.IntRange(0, 3).Draw(t, "n")), 10_000))
	}
	if rapid.Bool().Draw(t, "metadata") {
		l.Metadata = model.LabelsOf("trace_id", rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "trace"), "level", "info")
	}
	return row{at: at, kind: model.KindText, blob: string(model.AppendLine(nil, &l))}
}

// age draws a time in the past.
func (w *world) age() int64 {
	age := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour, 3 * time.Hour, 30 * time.Hour}).Draw(w.t, "age")
	return w.now - int64(age) - rapid.Int64Range(0, 5).Draw(w.t, "ms")*1e6
}

// pushLines is push for logs.
func (w *world) pushLines() {
	b := &model.Batch{Tenant: rapid.SampledFrom([]string{"a", "b"}).Draw(w.t, "tenant"), Signal: model.Logs}
	byKey := make(map[model.Key]model.Labels)
	for range rapid.IntRange(1, 6).Draw(w.t, "series") {
		l := model.LabelsOf("service_name", fmt.Sprint(rapid.IntRange(0, 2).Draw(w.t, "service")), "i", fmt.Sprint(rapid.IntRange(0, 5).Draw(w.t, "i")))
		k := l.Key(testSeed, model.Logs)
		byKey[k] = l
		id := seriesID{b.Tenant, string(l)}
		if w.want[id] == nil {
			w.want[id] = new(content)
		}
		for range rapid.IntRange(1, 8).Draw(w.t, "lines") {
			r := drawLine(w.t, w.age())
			r.appendTo(&b.Text.Rows)
			w.want[id].add(r)
		}
		b.EndSeries(k)
	}
	w.apply(b, byKey)
}

// push applies a batch with the labels that the write path would send along.
func (w *world) push() {
	tenant := rapid.SampledFrom([]string{"a", "b"}).Draw(w.t, "tenant")
	b := &model.Batch{Tenant: tenant, Signal: model.Metrics}
	byKey := make(map[model.Key]model.Labels)
	at := w.age
	for range rapid.IntRange(1, 30).Draw(w.t, "series") {
		l := model.LabelsOf("__name__", fmt.Sprintf("m%d", rapid.IntRange(0, 3).Draw(w.t, "name")),
			"job", fmt.Sprint(rapid.IntRange(0, 2).Draw(w.t, "job")), "i", fmt.Sprint(rapid.IntRange(0, 20).Draw(w.t, "i")))
		k := l.Key(testSeed, model.Metrics)
		byKey[k] = l
		id := seriesID{tenant, string(l)}
		if w.want[id] == nil {
			w.want[id] = new(content)
		}
		exemplars := rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(w.t, "exemplars")
		for range rapid.IntRange(min(1, exemplars)^1, 3).Draw(w.t, "rows") {
			r := drawSample(w.t, at())
			r.appendTo(&b.Samples.Rows)
			w.want[id].add(r)
		}
		for range exemplars {
			r := drawExemplar(w.t, at())
			r.appendTo(&b.Exemplars.Rows)
			w.want[id].add(r)
		}
		b.EndSeries(k)
	}
	w.apply(b, byKey)
}

func (w *world) apply(b *model.Batch, byKey map[model.Key]model.Labels) {
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
		got := make(map[seriesID]*content)
		// The head comes after the bucket, as it is newer, and is pinned before.
		var cursors []model.Cursor
		for _, f := range model.PointFamilies() {
			req := everything(tenant)
			req.Family = f
			cs, err := w.head.Source(nil).Select(context.Background(), req)
			w.must(err)
			cursors = append(cursors, cs...)
		}
		logs := everything(tenant)
		logs.Signal = model.Logs
		text, err := w.head.Source(nil).SelectText(context.Background(), logs)
		w.must(err)
		w.bucket.addTo(tenant, got)
		for _, c := range cursors {
			w.addCursor(tenant, c, got)
		}
		for _, c := range text {
			w.must(addText(tenant, c, got))
		}
		for id, c := range w.want {
			if id.tenant != tenant {
				continue
			}
			if got[id] == nil || !c.equal(got[id]) {
				w.t.Fatalf("%s %s: got %+v, want %+v", tenant, model.Labels(id.labels), got[id], *c)
			}
			delete(got, id)
		}
		if len(got) > 0 {
			w.t.Fatalf("%d series too many", len(got))
		}
	}
}

func everything(tenant string) *model.Request {
	return &model.Request{
		Tenant: tenant, Signal: model.Metrics, Range: model.Always(),
		Quota: new(model.Quota), Cost: new(model.Cost),
	}
}

func (w *world) addCursor(tenant string, c model.Cursor, got map[seriesID]*content) {
	var last model.Key
	for c.Next(context.Background()) {
		var rows model.Rows
		w.must(c.AppendRows(context.Background(), &rows))
		if c.Key().Compare(last) <= 0 {
			w.t.Fatalf("key %s after %s", c.Key(), last)
		}
		if rows.Len() == 0 || !slices.IsSorted(rows.Times) {
			w.t.Fatalf("rows at %v", rows.Times)
		}
		last = c.Key()
		contentOf(got, tenant, c.Labels()).addAll(&rows)
	}
	w.must(c.Err())
	w.must(c.Close())
}

// addText adds the lines of a cursor, oldest first.
func addText(tenant string, c model.TextCursor, got map[seriesID]*content) error {
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
		var before []row // of the same order
		for i, x := range chunks {
			if i > 0 && x.Order != chunks[i-1].Order {
				before = nil
			}
			var rows model.TextRows
			if err := x.Page.ReadText(ctx, x.Index, model.WantLines|model.WantMetadata, &rows); err != nil {
				return err
			}
			if before, err = appendLines(before, &rows); err != nil {
				return err
			}
			if rows.Len() != x.Rows || rows.Len() == 0 || rows.Times[0] != x.Min || rows.Times[rows.Len()-1] != x.Max {
				return fmt.Errorf("%d rows of %v in a chunk of %d in %v", rows.Len(), rows.Times, x.Rows, x.TimeRange)
			}
			for _, r := range before[len(before)-rows.Len():] {
				contentOf(got, tenant, c.Labels()).add(r)
			}
			x.Page.Release()
		}
	}
	return errors.Join(c.Err(), c.Close())
}

// appendLines appends lines, of which none may be there and none may be older than those that are.
func appendLines(dst []row, rows *model.TextRows) ([]row, error) {
	for i, at := range rows.Times {
		l := model.Line{Text: rows.Line(i), Metadata: rows.MetadataAt(i)}
		r := row{at: at, kind: model.KindText, blob: string(model.AppendLine(nil, &l))}
		if slices.Contains(dst, r) || len(dst) > 0 && dst[len(dst)-1].at > at {
			return dst, fmt.Errorf("a line of %d that is there, or comes late", at)
		}
		dst = append(dst, r)
	}
	return dst, nil
}

func contentOf(got map[seriesID]*content, tenant string, l model.Labels) *content {
	id := seriesID{tenant, string(l)}
	if got[id] == nil {
		got[id] = new(content)
	}
	return got[id]
}

// addTo adds the rows of shipped blocks, the older ones first.
func (b *bucketOfBlocks) addTo(tenant string, got map[seriesID]*content) {
	for _, name := range b.order {
		s := b.blocks[name].Stream()
		for s.Next(context.Background()) {
			if s.Tenant() == tenant {
				c := contentOf(got, tenant, s.Labels())
				for _, f := range model.PointFamilies() {
					c.addAll(s.Rows().Family(f))
				}
				if t := s.Text(); t != nil {
					c.addText(t)
				}
			}
		}
		if err := s.Err(); err != nil {
			panic(err) // the block has been checked when it came
		}
	}
}

// addText adds the text of a series of a block, which has been checked.
func (c *content) addText(t part.Text) {
	ctx := context.Background()
	run := t.Run(ctx, model.Always())
	var lines []row
	for run.Next() {
		rows, err := run.Piece().Rows(ctx)
		if err == nil {
			lines, err = appendLines(lines, rows)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := run.Err(); err != nil {
		panic(err)
	}
	for _, r := range lines {
		c.add(r)
	}
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
			"push":  func(t *rapid.T) { w.t = t; w.push() },
			"lines": func(t *rapid.T) { w.t = t; w.pushLines() },
			"flush": func(t *rapid.T) { w.t = t; w.must(w.head.Flush(ctx)) },
			"merge": func(t *rapid.T) { w.t = t; _, err := w.head.mergeOnce(ctx); w.must(err) },
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
