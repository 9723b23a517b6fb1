package compact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

const seed model.KeySeed = 5

var ctx = context.Background()

// fataler is testing.TB or rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is a bucket and what ought to be in it.
type world struct {
	bucket *fault.Bucket
	fs     vfs.FS // of the compactors
	c      *catalog.Catalog
	now    int64
	seq    uint64
	want   worldtest.Content
}

func newWorld(t fataler, bucketFS vfs.FS) *world {
	t.Helper()
	b, err := fs.New(bucketFS, "bucket")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{bucket: fault.New(b), fs: vfs.NewMem(), want: worldtest.Content{}}
	w.c = w.open(t)
	return w
}

func (w *world) open(t fataler) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(ctx, w.bucket, catalog.Options{Now: func() int64 { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// plantSeed gives the bucket the seed of the tests.
func (w *world) plantSeed(t fataler) {
	t.Helper()
	body := fmt.Sprintf(`{"version":1,"seed":"%016x"}`, uint64(seed))
	data := fmt.Sprintf("crc32c %08x\n%s", crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)), body)
	if err := w.bucket.Put(ctx, "seed", strings.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
}

// compactor returns one with small bounds.
func (w *world) compactor(t fataler, c *catalog.Catalog, change func(*Options)) *Compactor {
	t.Helper()
	o := Options{
		Catalog: c, Bucket: w.bucket, FS: w.fs, Dir: "compact", Seed: seed, Now: func() int64 { return w.now },
		firstPause: time.Nanosecond,
	}
	if change != nil {
		change(&o)
	}
	comp, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return comp
}

func labelsOf(i int) model.Labels {
	return model.LabelsOf("__name__", fmt.Sprint("m", i%3), "i", fmt.Sprint(i))
}

// shipment gathers rows of one signal that are shipped together.
type shipment struct {
	w      *world
	signal model.Signal
	rows   worldtest.Content
}

func (w *world) shipment() *shipment { return &shipment{w, model.Metrics, worldtest.Content{}} }

func (s *shipment) add(tenant string, l model.Labels, r worldtest.Row) {
	s.rows.Add(worldtest.ID{Tenant: tenant, Signal: s.signal, Labels: string(l)}, r)
}

func (s *shipment) addFloat(tenant string, l model.Labels, t int64, v uint64) {
	s.add(tenant, l, worldtest.Float(t, v))
}

func (s *shipment) addExemplar(tenant string, l model.Labels, t int64, v string) {
	s.add(tenant, l, worldtest.ExemplarRow(t, &model.Exemplar{Value: 1, Labels: model.LabelsOf("trace", v)}))
}

// textOf returns the rows of a series' lines.
func textOf(lines []worldtest.Row) *model.TextRows {
	rows := &model.TextRows{}
	for _, r := range lines {
		l, _ := model.SplitLine([]byte(r.Blob)) // the test has made it
		rows.Times = append(rows.Times, r.At)
		rows.Bytes = append(rows.Bytes, l.Text...)
		rows.Ends = append(rows.Ends, uint32(len(rows.Bytes)))
		if len(l.Metadata) == 0 {
			rows.MetadataOf = append(rows.MetadataOf, 0)
			continue
		}
		set := slices.IndexFunc(rows.Metadata, func(m model.Labels) bool { return bytes.Equal(m, l.Metadata) })
		if set < 0 {
			set = len(rows.Metadata)
			rows.Metadata = append(rows.Metadata, l.Metadata)
		}
		rows.MetadataOf = append(rows.MetadataOf, uint32(set)+1)
	}
	return rows
}

// ship makes a block of the shipment, commits it and notes what ought to be there now.
func (s *shipment) ship(t fataler) catalog.Block {
	t.Helper()
	w := s.w
	b, data := s.block(t)
	if b.Series == 0 {
		return b
	}
	for {
		_, err := w.c.Ship(ctx, shipOf(w.c, b), func(ctx context.Context, _ string) error {
			return w.bucket.Put(ctx, catalog.ObjectName(b.ID), bytes.NewReader(data), int64(len(data)))
		})
		if err == nil {
			break
		}
		if !errors.Is(err, model.ErrTransient) {
			t.Fatal(err)
		}
	}
	for id, rows := range s.rows {
		for _, r := range rows {
			w.want.Add(id, r)
		}
	}
	return b
}

// shipOf is a ship of one block, as the next one of a journal that all tests share.
func shipOf(c *catalog.Catalog, b catalog.Block) catalog.Ship {
	next := c.Covered("n1", 0).To + 1
	return catalog.Ship{Blocks: []catalog.Block{b}, Covered: []catalog.Coverage{{Node: "n1", From: next, To: next}}}
}

// commit commits a block whose object is complete.
func commit(c *catalog.Catalog, b catalog.Block) error {
	_, err := c.Ship(ctx, shipOf(c, b), func(context.Context, string) error { return nil })
	return err
}

// block writes a block as the head does.
func (s *shipment) block(t fataler) (catalog.Block, []byte) {
	t.Helper()
	w := s.w
	w.seq++
	// Sequence numbers do not say what came last: a window that is shipped late has low ones.
	seqHi := 1 + w.seq*7919%50
	var buf bytes.Buffer
	pw := part.NewWriter(&buf, part.WriterOptions{
		Seed: seed, Signal: s.signal, Node: "n1", SeqLo: 1, SeqHi: seqHi, Labels: true, Level: part.Dense, Created: w.now,
	})
	var order []worldtest.ID // of series
	for id := range s.rows {
		id.Family = 0
		order = append(order, id)
	}
	key := func(id worldtest.ID) model.Key { return model.Labels(id.Labels).Key(seed, s.signal) }
	slices.SortFunc(order, func(a, b worldtest.ID) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), key(a).Compare(key(b)))
	})
	order = slices.Compact(order)
	b := catalog.Block{Node: "n1", Signal: s.signal, SeqLo: 1, SeqHi: seqHi, Created: w.now}
	for i, id := range order {
		var rows model.SeriesRows
		for _, f := range model.PointFamilies() {
			id.Family = f
			for _, r := range s.rows[id] {
				r.AppendTo(rows.Family(f))
			}
		}
		id.Family = model.Text
		text := []part.Text{part.TextOfRows(textOf(s.rows[id]))}
		k := key(id)
		if err := errors.Join(pw.Series(id.Tenant, k, model.Labels(id.Labels)), pw.Rows(&rows), pw.Text(ctx, text, model.Always())); err != nil {
			t.Fatal(err)
		}
		if i == 0 || k.Less(b.KeyMin) {
			b.KeyMin = k
		}
		if i == 0 || b.KeyMax.Less(k) {
			b.KeyMax = k
		}
	}
	m, size, err := pw.Finish()
	if err != nil {
		t.Fatal(err)
	}
	b.Range, b.Series, b.Samples, b.Bytes = m.Range, m.Series, m.Samples, size
	for _, tenant := range m.Tenants {
		b.Tenants = append(b.Tenants, tenant.Name)
	}
	b.ID = catalog.BlockID("n1", 0, s.signal, catalog.DefaultGroup, b.Range, 1, seqHi, uint32(w.seq))
	return b, buf.Bytes()
}

// remove deletes rows.
func (w *world) remove(t fataler, d catalog.Deletion) {
	t.Helper()
	for {
		if _, err := w.c.Delete(ctx, d); err == nil {
			break
		} else if !errors.Is(err, model.ErrTransient) {
			t.Fatal(err)
		}
	}
	w.want = w.want.Where(func(id worldtest.ID, r worldtest.Row) bool {
		if id.Signal != d.Signal || id.Tenant != d.Tenant || !d.Range.Contains(r.At) {
			return true
		}
		for _, m := range d.Matchers {
			if string(model.Labels(id.Labels).Get(m.Name)) != m.Value { // tests delete by equality only
				return true
			}
		}
		return false
	})
}

// check compares what the bucket holds, as c sees it, with what ought to be there.
func (w *world) check(t fataler, c *catalog.Catalog) {
	t.Helper()
	if d := w.want.Diff(readAll(t, w.bucket, c)); d != "" {
		t.Fatalf("%s\n%s", d, list(c))
	}
}

// readAll reads as the archive does: blocks in their order, the last one wins, a value beats a stale marker.
func readAll(t fataler, b bucket.Bucket, c *catalog.Catalog) worldtest.Content {
	t.Helper()
	got := worldtest.Content{}
	blocks := slices.Clone(c.Live())
	sortByOrder(blocks)
	for i := range blocks {
		data, err := b.Get(ctx, catalog.ObjectName(blocks[i].ID))
		if err != nil {
			t.Fatal(err)
		}
		r, err := part.Open(ctx, bytes.NewReader(data), int64(len(data)))
		if err == nil {
			err = part.Check(ctx, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		for s, err := range part.All(ctx, r.Stream()) {
			if err != nil {
				t.Fatal(err)
			}
			cuts := c.Deletions(&blocks[i], s.Tenant).Cuts(s.Labels)
			ranges := cuts.Ranges()
			rows := s.Rows
			id := worldtest.ID{Tenant: s.Tenant, Signal: blocks[i].Signal, Labels: string(s.Labels)}
			for _, f := range model.PointFamilies() {
				cuts.Rows(rows.Family(f), 0)
				got.AddRows(id, rows.Family(f))
			}
			for _, x := range linesOf(t, s.Text) {
				if !slices.ContainsFunc(ranges, func(r model.TimeRange) bool { return r.Contains(x.At) }) {
					got.Add(id, x)
				}
			}
		}
	}
	return got
}

// linesOf reads the text of a series, which may be nil.
func linesOf(t fataler, text part.Text) (lines []worldtest.Row) {
	t.Helper()
	if text == nil {
		return nil
	}
	run := text.Run(ctx, model.Always())
	for run.Next() {
		rows, err := run.Piece().Rows(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows.Times {
			lines = append(lines, worldtest.TextRowAt(rows, i))
		}
	}
	if run.Err() != nil {
		t.Fatal(run.Err())
	}
	return lines
}

func list(c *catalog.Catalog) string {
	var b strings.Builder
	for _, x := range c.Live() {
		fmt.Fprintf(&b, "%s level %d order %d to %d times %d to %d %d bytes, tenants %v, generation %d\n",
			x.ID, x.Level, x.OrderLo, x.OrderHi, x.Range.Min, x.Range.Max, x.Bytes, x.Tenants, x.Generation)
	}
	return b.String()
}

// objects lists the bucket without copies of records and lists of collected ones.
func objects(t fataler, b bucket.Bucket) []string {
	t.Helper()
	names := []string{}
	err := b.List(ctx, "", func(name string, _ int64) error {
		if !strings.HasPrefix(name, "copies/") && !strings.HasPrefix(name, "collected/") {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// draw ships random rows: of a window, or late ones of several days.
func (w *world) draw(t *rapid.T) {
	s := w.shipment()
	s.signal = rapid.SampledFrom([]model.Signal{model.Metrics, model.Metrics, model.Logs}).Draw(t, "signal")
	from, span := w.now-rapid.Int64Range(0, 3).Draw(t, "hours back")*int64(time.Hour), int64(2*time.Hour)
	if rapid.IntRange(0, 2).Draw(t, "late") == 0 {
		from, span = w.now-rapid.Int64Range(0, 5).Draw(t, "days back")*int64(day), rapid.Int64Range(1, 4).Draw(t, "days")*int64(day)
	}
	p := worldtest.Pushes{Tenants: []string{"a", "b", "c"}, Labels: worldtest.NumberedLabels(6, 3), Series: 3, Rows: 3}
	// A coarse grid, so that rows meet.
	p.Time = func() int64 {
		return (from+rapid.Int64Range(0, span).Draw(t, "at"))/int64(6*time.Hour)*int64(6*time.Hour) + rapid.Int64Range(0, 1).Draw(t, "odd")
	}
	for range rapid.IntRange(1, 4).Draw(t, "batches") {
		s.rows.Push(p.Batch(worldtest.Drawn{T: t}, s.signal))
	}
	s.ship(t)
}
