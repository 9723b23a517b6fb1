package sample

import (
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/selection"
	"github.com/shaledb/shale/internal/read/logql/window"
)

// worker is the part of an evaluation that one goroutine uses.
type worker struct {
	*evaluation
	cursor window.Cursor
	runner *line.Runner
	table  table
	failed failed
	sample line.Sample
	added  window.Sample
	take   window.Charge
	// charged is what the worker has taken from the quota, and room how much of it is not used.
	charged, room int64

	tenant int32
	stream model.Labels
	// plain is the destination of lines of the stream without metadata, if plainKnown.
	plain      destination
	plainKnown bool
	// sets are the destinations of the lines of a chunk, by their set of metadata, if setsReady.
	sets      []destination
	setsReady bool
	labels    []byte
	pairs     []pair
}

// pair is a label on its way into labels.
type pair struct{ name, value string }

// destination is where lines of equal labels count: a series, or an error.
type destination struct {
	series *series
	failed model.Labels // if there is no series
	known  bool
}

// grain is how much is taken from the quota at a time.
const grain = 16 << 10

// charge charges memory of the worker's series.
func (w *worker) charge(n int64) error {
	if n > w.room {
		want := max(n-w.room, grain)
		if err := w.quota.TakeBytes(want); err != nil {
			if want = n - w.room; w.quota.TakeBytes(want) != nil {
				return err
			}
		}
		w.charged += want
		w.room += want
	}
	w.room -= n
	if w.room > 4*grain {
		_ = w.quota.TakeBytes(grain - w.room) // giving back does not fail
		w.charged -= w.room - grain
		w.room = grain
	}
	return nil
}

// Bind says what ends the work, and charges memory that stages take.
func (w *worker) Bind(ctx context.Context, charge func(bytes int64) error) {
	w.runner.Bind(ctx, charge)
}

// SetStream says that further rows are of a stream.
func (w *worker) SetStream(tenant int32, labels model.Labels) {
	w.tenant, w.stream, w.plainKnown, w.setsReady = tenant, labels, false, false
	w.runner.SetStream(labels)
}

// Want returns the columns that Rows and Picked need.
func (w *worker) Want() model.TextWant {
	want := model.WantNoMore
	if w.program.bytes {
		want |= model.WantLengths
	}
	if w.program.pipeline.NeedsMetadata(w.stream) {
		want |= model.WantMetadata
	}
	return want
}

// Skips reports whether no window has any of these times.
func (w *worker) Skips(r model.TimeRange) bool {
	cell, until := w.cursor.Find(r.Min)
	return cell < 0 && until >= r.Max
}

// Chunk counts a chunk that lies in one cell, unless its metadata may be part of labels.
func (w *worker) Chunk(c *model.TextChunk) (bool, error) {
	if w.program.pipeline.NeedsMetadata(w.stream) {
		return false, nil
	}
	cell, until := w.cursor.Find(c.Min)
	if until < c.Max {
		return false, nil
	}
	if cell < 0 {
		return true, nil
	}
	d, err := w.plainDestination()
	if err != nil {
		return false, err
	}
	n := uint64(c.Rows)
	if w.program.bytes {
		n = uint64(c.Bytes)
	}
	return true, w.count(d, cell, n)
}

// NextChunk says that further rows are of another chunk, whose sets of metadata are other ones.
func (w *worker) NextChunk() { w.setsReady = false }

// Rows counts rows of a chunk, a cell at a time.
func (w *worker) Rows(rows, metadata *model.TextRows, from, to int) error {
	d, err := w.destinations(metadata)
	if err != nil {
		return err
	}
	for from < to {
		cell, until := w.cursor.Find(rows.Times[from])
		next := from + sort.Search(to-from, func(i int) bool { return rows.Times[from+i] > until })
		if cell >= 0 {
			if err := w.rows(d, rows, metadata, cell, from, next); err != nil {
				return err
			}
		}
		from = next
	}
	return nil
}

// rows counts rows of one cell.
func (w *worker) rows(d *destination, rows, metadata *model.TextRows, cell int32, from, to int) error {
	if d != nil {
		n := uint64(to - from)
		if w.program.bytes {
			n = uint64(rows.Ends[to-1] - begin(rows, from))
		}
		return w.count(d, cell, n)
	}
	for i := from; i < to; i++ {
		if err := w.row(rows, metadata, cell, i); err != nil {
			return err
		}
	}
	return nil
}

// Picked counts some rows of a chunk.
func (w *worker) Picked(rows, metadata *model.TextRows, picked []int32) error {
	d, err := w.destinations(metadata)
	if err != nil {
		return err
	}
	for _, i := range picked {
		cell, _ := w.cursor.Find(rows.Times[i])
		switch {
		case cell < 0:
		case d == nil:
			err = w.row(rows, metadata, cell, int(i))
		default:
			err = w.count(d, cell, w.weight(rows, int(i)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Row counts one row. It leaves the sets of its chunk alone, which may have as many sets as rows.
func (w *worker) Row(rows, metadata *model.TextRows, row int) error {
	cell, _ := w.cursor.Find(rows.Times[row])
	if cell < 0 {
		return nil
	}
	if w.plainOnly(metadata) {
		d, err := w.plainDestination()
		if err != nil {
			return err
		}
		return w.count(d, cell, w.weight(rows, row))
	}
	d, err := w.destinationOf(metadata.MetadataAt(row))
	if err != nil {
		return err
	}
	return w.count(&d, cell, w.weight(rows, row))
}

// row counts a row whose labels depend on its metadata.
func (w *worker) row(rows, metadata *model.TextRows, cell int32, i int) error {
	set := metadata.MetadataOf[i]
	d := &w.sets[set]
	if !d.known {
		var err error
		if *d, err = w.destinationOf(metadata.MetadataAt(i)); err != nil {
			return err
		}
	}
	return w.count(d, cell, w.weight(rows, i))
}

// weight is what a row counts for: 1, or the length of its line.
func (w *worker) weight(rows *model.TextRows, i int) uint64 {
	if !w.program.bytes {
		return 1
	}
	return uint64(rows.Ends[i] - begin(rows, i))
}

// begin returns where line i begins.
func begin(rows *model.TextRows, i int) uint32 {
	if i == 0 {
		return rows.Begin
	}
	return rows.Ends[i-1]
}

func (w *worker) count(d *destination, cell int32, n uint64) error {
	if d.series == nil {
		w.fail(&w.failed, cell, d.failed)
		return nil
	}
	return d.series.count.AddCount(cell, n, w.take)
}

// destinations returns the destination of all rows of a chunk, or nil if it depends on their metadata. Then
// it prepares sets for them.
func (w *worker) destinations(metadata *model.TextRows) (*destination, error) {
	if w.plainOnly(metadata) {
		return w.plainDestination()
	}
	if w.setsReady {
		return nil, nil
	}
	n := len(metadata.Metadata) + 1
	if cap(w.sets) < n {
		w.sets = make([]destination, n)
	}
	w.sets = w.sets[:n]
	clear(w.sets)
	w.setsReady = true
	return nil, nil
}

// plainOnly reports whether the labels of rows do not depend on their metadata.
func (w *worker) plainOnly(metadata *model.TextRows) bool {
	return len(metadata.MetadataOf) == 0 || !w.program.pipeline.NeedsMetadata(w.stream)
}

func (w *worker) plainDestination() (*destination, error) {
	if !w.plainKnown {
		var err error
		if w.plain, err = w.destinationOf(nil); err != nil {
			return nil, err
		}
		w.plainKnown = true
	}
	return &w.plain, nil
}

// destinationOf returns where lines with this metadata count that no stage looks at.
func (w *worker) destinationOf(metadata model.Labels) (destination, error) {
	if _, err := w.runner.Sample(0, nil, metadata, &w.sample); err != nil {
		return destination{}, err
	}
	labels := w.withTenant(w.sample.Labels)
	if w.sample.Failed {
		return destination{failed: model.Labels(string(labels)), known: true}, nil
	}
	s, err := w.seriesOf(labels)
	return destination{series: s, known: true}, err
}

// Line runs the stages on a line and adds its number to its series, unless it lies in no window.
func (w *worker) Line(l *selection.Line) (bool, error) {
	cell, _ := w.cursor.Find(l.Time)
	if cell < 0 {
		return false, nil
	}
	ok, err := w.runner.Sample(l.Time, l.Text, l.Metadata, &w.sample)
	if err != nil || !ok {
		return false, err
	}
	return true, w.add(l, cell)
}

// Splits reports whether SplitLine may be asked.
func (w *worker) Splits() bool { return w.runner.Splits() }

// SetPage says that SplitLine is about the lines of a page.
func (w *worker) SetPage(p *model.SplitText) { w.runner.SetPage(p) }

// SplitLine is Line for a line of the page, of so many bytes. It returns false for known if it needs the
// text.
func (w *worker) SplitLine(l *selection.Line, line, bytes int) (ok, known bool, err error) {
	cell, _ := w.cursor.Find(l.Time)
	if cell < 0 {
		return false, true, nil
	}
	if ok, known = w.runner.SampleSplit(line, bytes, l.Metadata, &w.sample); !ok {
		return false, known, nil
	}
	return true, true, w.add(l, cell)
}

// add adds the sample of a line to its series.
func (w *worker) add(l *selection.Line, cell int32) error {
	labels := w.withTenant(w.sample.Labels)
	if w.sample.Failed {
		w.fail(&w.failed, cell, labels)
		return nil
	}
	s, err := w.seriesOf(labels)
	if err != nil {
		return err
	}
	switch {
	case s.count == nil:
		w.added = window.Sample{Time: l.Time, Position: uint64(l.Position), Value: w.sample.Value}
		return s.window.Add(cell, &w.added, w.take)
	case w.program.bytes:
		return s.count.AddCount(cell, uint64(w.sample.Bytes), w.take)
	}
	return s.count.AddCount(cell, 1, w.take)
}

// seriesOf returns the series with these labels.
func (w *worker) seriesOf(labels model.Labels) (*series, error) {
	hash := w.hashOf(labels)
	if s := w.table.find(hash, labels); s != nil {
		return s, nil
	}
	charged := int64(len(labels)) + seriesBytes
	if err := w.charge(charged); err != nil {
		return nil, err
	}
	s := w.table.add(hash, labels, w.program.aggregation, w.cells)
	s.charged = charged
	return s, nil
}

const tenantLabel, originalTenantLabel = "__tenant_id__", "original___tenant_id__"

// withTenant adds the tenant to labels if the query asks for several. A label of that name gets another one.
func (w *worker) withTenant(labels model.Labels) model.Labels {
	if w.tenants == nil {
		return labels
	}
	w.pairs = append(w.pairs[:0], pair{tenantLabel, w.tenants[w.tenant]})
	for name, value, rest, ok := labels.Next(); ok; name, value, rest, ok = rest.Next() {
		switch string(name) {
		case tenantLabel:
			w.pairs = append(w.pairs, pair{originalTenantLabel, string(value)})
		case originalTenantLabel:
			if !slices.ContainsFunc(w.pairs, func(p pair) bool { return p.name == originalTenantLabel }) {
				w.pairs = append(w.pairs, pair{originalTenantLabel, string(value)})
			}
		default:
			w.pairs = append(w.pairs, pair{string(name), string(value)})
		}
	}
	slices.SortFunc(w.pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	w.labels = w.labels[:0]
	for _, p := range w.pairs {
		w.labels = line.AppendLabel(w.labels, p.name, p.value)
	}
	return w.labels
}
