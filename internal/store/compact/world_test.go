package compact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
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

// place is where a row stands.
type place struct {
	signal         model.Signal
	tenant, labels string
	time           int64
}

// world is a bucket and what ought to be in it.
type world struct {
	bucket *fault.Bucket
	fs     vfs.FS // of the compactors
	c      *catalog.Catalog
	now    int64
	seq    uint64
	want   map[place]uint64
	// exemplars and lines are a set.
	exemplars map[place]map[string]bool
}

func newWorld(t fataler, bucketFS vfs.FS) *world {
	t.Helper()
	b, err := fs.New(bucketFS, "bucket")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{bucket: fault.New(b), fs: vfs.NewMem(), want: make(map[place]uint64), exemplars: make(map[place]map[string]bool)}
	w.c = w.open(t)
	return w
}

func (w *world) open(t fataler) *catalog.Catalog {
	t.Helper()
	c, err := catalog.OpenWith(ctx, w.bucket, catalog.Options{Now: func() int64 { return w.now }})
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

// shipment gathers rows that are shipped together.
type shipment struct {
	w      *world
	series map[[2]string]*model.SeriesRows // by tenant and labels
	lines  map[[2]string]*model.Rows       // likewise, of logs
}

func (w *world) shipment() *shipment {
	return &shipment{w, make(map[[2]string]*model.SeriesRows), make(map[[2]string]*model.Rows)}
}

func (s *shipment) rows(tenant string, l model.Labels) *model.SeriesRows {
	k := [2]string{tenant, string(l)}
	if s.series[k] == nil {
		s.series[k] = new(model.SeriesRows)
	}
	return s.series[k]
}

func (s *shipment) add(tenant string, l model.Labels, t int64, v uint64) {
	s.rows(tenant, l).Samples.Append(t, v, 0)
}

func (s *shipment) addExemplar(tenant string, l model.Labels, t int64, v string) {
	blob := model.AppendExemplar(nil, &model.Exemplar{Value: 1, Labels: model.LabelsOf("trace", v)})
	s.rows(tenant, l).Exemplars.AppendBlob(t, model.KindExemplar, blob, 0)
}

// addLine adds a line, with its text as metadata too.
func (s *shipment) addLine(tenant string, l model.Labels, t int64, text string) {
	k := [2]string{tenant, string(l)}
	s.rows(tenant, l)
	if s.lines[k] == nil {
		s.lines[k] = new(model.Rows)
	}
	s.lines[k].AppendBlob(t, model.KindText, model.AppendLine(nil, &model.Line{Text: []byte(text), Metadata: model.LabelsOf("id", text)}), 0)
}

// textOf are the rows of a series' lines.
func textOf(lines *model.Rows) *model.TextRows {
	rows := &model.TextRows{}
	if lines == nil {
		return rows
	}
	lines.NormalizeSet()
	for i, at := range lines.Times {
		l, _ := model.SplitLine(lines.Blob(i)) // the test has made it
		rows.Times = append(rows.Times, at)
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
func (s *shipment) ship(t fataler, signal model.Signal) catalog.Block {
	t.Helper()
	w := s.w
	b, data := s.block(t, signal)
	if b.Series == 0 {
		return b
	}
	for {
		err := w.c.Ship(ctx, b, func(ctx context.Context) error {
			return w.bucket.Put(ctx, catalog.ObjectName(b.ID), bytes.NewReader(data), int64(len(data)))
		})
		if err == nil {
			break
		}
		if !errors.Is(err, model.ErrTransient) {
			t.Fatal(err)
		}
	}
	for k, rows := range s.series {
		rows.Normalize()
		for i, at := range rows.Samples.Times {
			p, v := place{signal, k[0], k[1], at}, rows.Samples.Values[i]
			if old, ok := w.want[p]; !ok || v != model.StaleNaN || old == model.StaleNaN {
				w.want[p] = v
			}
		}
		for i, at := range rows.Exemplars.Times {
			enter(w.exemplars, place{signal, k[0], k[1], at}, string(rows.Exemplars.Blob(i)))
		}
	}
	for k, lines := range s.lines {
		for i, at := range lines.Times {
			enter(w.exemplars, place{signal, k[0], k[1], at}, string(lines.Blob(i)))
		}
	}
	return b
}

// enter adds a row to a set.
func enter(set map[place]map[string]bool, p place, value string) {
	if set[p] == nil {
		set[p] = make(map[string]bool)
	}
	set[p][value] = true
}

// block writes a block as the head does.
func (s *shipment) block(t fataler, signal model.Signal) (catalog.Block, []byte) {
	t.Helper()
	w := s.w
	w.seq++
	// Sequence numbers do not say what came last: a window that is shipped late has low ones.
	seqHi := 1 + w.seq*7919%50
	var buf bytes.Buffer
	pw := part.NewWriter(&buf, part.WriterOptions{
		Seed: seed, Signal: signal, Node: "n1", SeqLo: 1, SeqHi: seqHi, Labels: true, Level: part.Dense, Created: w.now,
	})
	type entry struct {
		tenant string
		key    model.Key
		labels model.Labels
	}
	var order []entry
	for k := range s.series {
		order = append(order, entry{k[0], model.Labels(k[1]).Key(seed, signal), model.Labels(k[1])})
	}
	slices.SortFunc(order, func(a, b entry) int {
		if c := strings.Compare(a.tenant, b.tenant); c != 0 {
			return c
		}
		return a.key.Compare(b.key)
	})
	b := catalog.Block{Node: "n1", Signal: signal, SeqLo: 1, SeqHi: seqHi, Created: w.now}
	for i, e := range order {
		rows := s.series[[2]string{e.tenant, string(e.labels)}]
		rows.Normalize()
		text := []part.Text{part.TextOfRows(textOf(s.lines[[2]string{e.tenant, string(e.labels)}]))}
		if err := errors.Join(pw.Series(e.tenant, e.key, e.labels), pw.Rows(rows), pw.Text(ctx, text, model.Always())); err != nil {
			t.Fatal(err)
		}
		if i == 0 || e.key.Less(b.KeyMin) {
			b.KeyMin = e.key
		}
		if i == 0 || b.KeyMax.Less(e.key) {
			b.KeyMax = e.key
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
	b.ID = catalog.BlockID("n1", 0, signal, catalog.DefaultGroup, b.Range, 1, seqHi, uint32(w.seq))
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
	matches := func(p place) bool {
		if p.signal != d.Signal || p.tenant != d.Tenant || !d.Range.Contains(p.time) {
			return false
		}
		for _, m := range d.Matchers {
			if string(model.Labels(p.labels).Get(m.Name)) != m.Value { // tests delete by equality only
				return false
			}
		}
		return true
	}
	maps.DeleteFunc(w.want, func(p place, _ uint64) bool { return matches(p) })
	maps.DeleteFunc(w.exemplars, func(p place, _ map[string]bool) bool { return matches(p) })
}

// check compares what the bucket holds, as c sees it, with what ought to be there.
func (w *world) check(t fataler, c *catalog.Catalog) {
	t.Helper()
	got, exemplars := readAll(t, w.bucket, c)
	for p, v := range w.want {
		if g, ok := got[p]; !ok || g != v {
			t.Fatalf("%q %s at %d is %v (%t), should be %v\n%s", p.tenant, model.Labels(p.labels), p.time,
				math.Float64frombits(g), ok, math.Float64frombits(v), list(c))
		}
	}
	if len(got) != len(w.want) {
		t.Fatalf("%d rows, should be %d\n%s", len(got), len(w.want), list(c))
	}
	if !maps.EqualFunc(exemplars, w.exemplars, maps.Equal[map[string]bool]) {
		t.Fatalf("exemplars %v, should be %v\n%s", exemplars, w.exemplars, list(c))
	}
}

// readAll reads as the archive does: blocks in their order, the last one wins, a value beats a stale marker.
func readAll(t fataler, b bucket.Bucket, c *catalog.Catalog) (map[place]uint64, map[place]map[string]bool) {
	t.Helper()
	got, exemplars := make(map[place]uint64), make(map[place]map[string]bool)
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
		s := r.Stream()
		for s.Next(ctx) {
			ranges := c.Deletions(&blocks[i], s.Tenant()).Ranges(s.Labels())
			rows := s.Rows()
			for _, f := range model.PointFamilies() {
				catalog.CutRows(rows.Family(f), 0, ranges)
			}
			for k, at := range rows.Samples.Times {
				p, v := place{blocks[i].Signal, s.Tenant(), string(s.Labels()), at}, rows.Samples.Values[k]
				if old, ok := got[p]; !ok || v != model.StaleNaN || old == model.StaleNaN {
					got[p] = v
				}
			}
			for k, at := range rows.Exemplars.Times {
				enter(exemplars, place{blocks[i].Signal, s.Tenant(), string(s.Labels()), at}, string(rows.Exemplars.Blob(k)))
			}
			for _, x := range linesOf(t, s.Text()) {
				if !slices.ContainsFunc(ranges, func(r model.TimeRange) bool { return r.Contains(x.at) }) {
					enter(exemplars, place{blocks[i].Signal, s.Tenant(), string(s.Labels()), x.at}, x.blob)
				}
			}
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
	}
	return got, exemplars
}

// line is a row of text.
type line struct {
	at   int64
	blob string
}

// linesOf reads the text of a series; nil has none.
func linesOf(t fataler, text part.Text) (lines []line) {
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
		for i, at := range rows.Times {
			l := model.Line{Text: rows.Line(i), Metadata: rows.MetadataAt(i)}
			lines = append(lines, line{at, string(model.AppendLine(nil, &l))})
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

func objects(t fataler, b bucket.Bucket) []string {
	t.Helper()
	names := []string{}
	if err := b.List(ctx, "", func(name string, _ int64) error { names = append(names, name); return nil }); err != nil {
		t.Fatal(err)
	}
	return names
}

// draw ships random rows: of a window, or late ones of several days.
func (w *world) draw(t *rapid.T) {
	s, signal := w.shipment(), rapid.SampledFrom([]model.Signal{model.Metrics, model.Metrics, model.Logs}).Draw(t, "signal")
	from, span := w.now-rapid.Int64Range(0, 3).Draw(t, "hours back")*int64(time.Hour), int64(2*time.Hour)
	if rapid.IntRange(0, 2).Draw(t, "late") == 0 {
		from, span = w.now-rapid.Int64Range(0, 5).Draw(t, "days back")*int64(day), rapid.Int64Range(1, 4).Draw(t, "days")*int64(day)
	}
	for range rapid.IntRange(1, 12).Draw(t, "rows") {
		tenant := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant")
		l := labelsOf(rapid.IntRange(0, 5).Draw(t, "series"))
		// A coarse grid, so that rows meet.
		at := (from+rapid.Int64Range(0, span).Draw(t, "at"))/int64(6*time.Hour)*int64(6*time.Hour) + rapid.Int64Range(0, 1).Draw(t, "odd")
		if signal == model.Logs {
			text := fmt.Sprint("line ", rapid.IntRange(0, 3).Draw(t, "line"))
			s.addLine(tenant, l, at, strings.Repeat(text, rapid.SampledFrom([]int{0, 1, 1, 1, 20_000}).Draw(t, "long")))
			continue
		}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			s.add(tenant, l, at, model.StaleNaN)
		case 1:
			s.addExemplar(tenant, l, at, fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "trace")))
		default:
			s.add(tenant, l, at, math.Float64bits(float64(w.seq)))
		}
	}
	s.ship(t, signal)
}
