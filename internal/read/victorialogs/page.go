package victorialogs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/logs"
)

// columns say what was fetched of the lines of a page. Each has what the one before it has.
type columns uint8

const (
	nothing columns = iota
	times           // and streams
	others          // all but the text
	whole
)

// page is the lines of some buckets, of all streams. It is fetched by one request when it is first read.
type page struct {
	*directory
	model.TimeRange
	cells   []cell
	certain bool // no line of any cell is there twice

	mu     sync.Mutex
	has    columns
	of     map[*stream]*lines
	charge int64
}

func newPage(d *directory, cells []cell) *page {
	p := &page{directory: d, cells: slices.Clone(cells), certain: true, TimeRange: cells[0].TimeRange}
	for i := range cells {
		p.Min, p.Max = min(p.Min, cells[i].Min), max(p.Max, cells[i].Max)
		p.certain = p.certain && cells[i].certain
	}
	return p
}

// Skip returns false: the directory has only lines that passed the filter.
func (p *page) Skip(context.Context) (bool, error) { return false, nil }

// ReadText fills dst with the lines of a chunk.
func (p *page) ReadText(ctx context.Context, index int, want model.TextWant, dst *model.TextRows) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(ctx, p.columnsFor(want)); err != nil {
		return err
	}
	c := &p.cells[index]
	p.of[c.stream].fill(c.TimeRange, want, dst)
	return nil
}

// columnsFor returns what must be fetched.
func (p *page) columnsFor(want model.TextWant) columns {
	switch {
	case !p.certain || want&(model.WantLines|model.WantLengths) != 0:
		return whole
	case want&model.WantMetadata == 0:
		return times
	case p.source.streams.rules.DetectLevels: // levels are found in lines
		return whole
	}
	return others
}

// resolve makes the numbers of the cells exact, by reading their lines.
func (p *page) resolve(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(ctx, whole); err != nil {
		return err
	}
	for i := range p.cells {
		c := &p.cells[i]
		l := p.of[c.stream]
		from, to := l.within(c.TimeRange)
		if c.rows = int64(to - from); from < to {
			c.TimeRange = model.TimeRange{Min: l.times[from], Max: l.times[to-1]}
			c.bytes = int64(l.ends[to-1] - l.begin(from))
		}
	}
	p.releaseLocked()
	return nil
}

// Release gives the lines up. A later read fetches them again.
func (p *page) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releaseLocked()
}

func (p *page) releaseLocked() {
	_ = p.req.Quota.TakeBytes(-p.charge) // giving back does not fail
	p.has, p.of, p.charge = nothing, nil, 0
}

// rowBytes is about what a line takes besides its text, while it is sorted and after.
const rowBytes = 80

// loadLocked fetches the lines, unless that was done.
func (p *page) loadLocked(ctx context.Context, want columns) error {
	if p.has >= want {
		return nil
	}
	p.releaseLocked()
	text := p.filter.in(p.TimeRange)
	switch want {
	case times:
		text += " | fields _time, _stream"
	case others:
		text += " | delete _msg, _stream_id"
	default:
		text += " | delete _stream_id"
	}
	f := newFetch(p, want)
	err := p.source.client.query(ctx, p.account, kindLines, text, f.add)
	p.source.metrics.rows.Add(float64(f.rows))
	if err == nil {
		err = p.keepLocked(f, want)
	}
	if err != nil {
		p.releaseLocked()
	}
	return err
}

// keepLocked sorts what was fetched and checks that all lines of the directory are there.
func (p *page) keepLocked(f *fetch, want columns) error {
	p.of = f.of
	for i := range p.cells {
		c := &p.cells[i]
		l := p.of[c.stream]
		if l == nil {
			l = new(lines)
			p.of[c.stream] = l
		}
		l.settle(want)
		if from := hides(p.req, c.Labels); from > p.req.Range.Min {
			continue // the directory counts lines that are hidden
		}
		lo, hi := l.within(c.TimeRange)
		if found := int64(hi-lo) + l.droppedWithin(c.TimeRange); found < c.rows {
			return fmt.Errorf("%w: VictoriaLogs at %s has sent %d of the %d lines that it counted for %s from %s to %s", model.ErrTransient,
				p.source.client.url, found, c.rows, c.Labels, timeText(c.Min), timeText(c.Max))
		}
	}
	p.has = want
	return nil
}

// lines are the lines of one stream in a page.
type lines struct {
	times    []int64
	bytes    []byte
	ends     []uint32
	metadata []model.Labels
	of       []uint32
	dropped  []int64 // times of lines that were there twice
	settled  bool
}

func (l *lines) begin(i int) uint32 {
	if i == 0 {
		return 0
	}
	return l.ends[i-1]
}

func (l *lines) text(i int) []byte { return l.bytes[l.begin(i):l.ends[i]] }

// within returns the lines of a range.
func (l *lines) within(r model.TimeRange) (from, to int) {
	from = sort.Search(len(l.times), func(i int) bool { return l.times[i] >= r.Min })
	return from, from + sort.Search(len(l.times)-from, func(i int) bool { return l.times[from+i] > r.Max })
}

func (l *lines) droppedWithin(r model.TimeRange) (n int64) {
	for _, t := range l.dropped {
		if r.Contains(t) {
			n++
		}
	}
	return n
}

// settle sorts the lines by time, those of one time by their text and their metadata, and drops those that
// are there twice. VictoriaLogs does not keep the order in which lines of one time arrived.
func (l *lines) settle(has columns) {
	if l.settled {
		return
	}
	l.settled = true
	order := make([]int, len(l.times))
	for i := range order {
		order[i] = i
	}
	compare := func(a, b int) int {
		if c := cmp.Compare(l.times[a], l.times[b]); c != 0 || has != whole {
			return c
		}
		return cmp.Or(bytes.Compare(l.text(a), l.text(b)), bytes.Compare(l.metadataAt(a), l.metadataAt(b)))
	}
	slices.SortFunc(order, compare)
	out := lines{metadata: l.metadata, settled: true, times: make([]int64, 0, len(order))}
	if has == whole {
		out.bytes, out.ends = make([]byte, 0, len(l.bytes)), make([]uint32, 0, len(order))
	}
	for k, i := range order {
		if has == whole {
			if k > 0 && compare(order[k-1], i) == 0 {
				out.dropped = append(out.dropped, l.times[i])
				continue
			}
			out.bytes = append(out.bytes, l.text(i)...)
			out.ends = append(out.ends, uint32(len(out.bytes)))
		}
		out.times = append(out.times, l.times[i])
		if len(l.metadata) > 0 {
			out.of = append(out.of, l.of[i])
		}
	}
	*l = out
}

func (l *lines) metadataAt(i int) model.Labels {
	if len(l.of) == 0 || l.of[i] == 0 {
		return nil
	}
	return l.metadata[l.of[i]-1]
}

// fill sets dst to the lines of a range.
func (l *lines) fill(r model.TimeRange, want model.TextWant, dst *model.TextRows) {
	dst.Reset()
	from, to := l.within(r)
	dst.Times = append(dst.Times, l.times[from:to]...)
	if want&(model.WantLines|model.WantLengths) != 0 && to > from {
		dst.Begin, dst.Ends = l.begin(from), append(dst.Ends, l.ends[from:to]...)
		if want&model.WantLines != 0 {
			dst.Bytes = l.bytes
		}
	}
	if want&model.WantMetadata != 0 && len(l.metadata) > 0 {
		dst.Metadata = append(dst.Metadata, l.metadata...)
		dst.MetadataOf = append(dst.MetadataOf, l.of[from:to]...)
	}
}

// fetch gathers the rows of a response as lines.
type fetch struct {
	p    *page
	want columns
	rows int64
	of   map[*stream]*lines
	// Of the last row: neighbours mostly are of one stream.
	spelling string
	fields   []field // of the stream
	stream   *stream
	lines    *lines

	entries logs.Entries
	batch   model.Batch
	known   map[metadataKey]uint32
	labels  []byte
}

// metadataKey is a set of metadata of a stream.
type metadataKey struct {
	stream *stream
	labels string
}

func newFetch(p *page, want columns) *fetch {
	f := &fetch{p: p, want: want, of: map[*stream]*lines{}, known: map[metadataKey]uint32{}}
	f.entries.Start(&p.source.streams.rules, &f.batch, func(int64) error { return nil })
	return f
}

// add takes a row.
func (f *fetch) add(row []field) error {
	f.rows++
	t, ok := parseTime(valueOf(row, "_time"))
	if !ok {
		return fmt.Errorf("%w: VictoriaLogs at %s has sent a line without a time: %s", model.ErrCorrupt, f.p.source.client.url, rowText(row))
	}
	if err := f.setStream(valueOf(row, "_stream")); err != nil || f.stream == nil {
		return err
	}
	l := f.lines
	text := valueOf(row, "_msg")
	if len(l.bytes)+len(text) > math.MaxInt32 {
		return fmt.Errorf("%w: the lines of %s from %s to %s exceed %d bytes; ask for a shorter range", model.ErrLimit, f.stream.Labels, timeText(f.p.Min), timeText(f.p.Max), math.MaxInt32)
	}
	if err := f.take(2*int64(len(text)) + rowBytes); err != nil {
		return err
	}
	l.times = append(l.times, t)
	if f.want == times {
		return nil
	}
	l.bytes = append(l.bytes, text...)
	l.ends = append(l.ends, uint32(len(l.bytes)))
	return f.addMetadata(row, text)
}

func (f *fetch) take(n int64) error {
	if err := f.p.req.Quota.TakeBytes(n); err != nil {
		return err
	}
	f.p.charge += n
	return nil
}

func (f *fetch) setStream(spelling []byte) (err error) {
	if f.fields != nil && string(spelling) == f.spelling {
		return nil
	}
	f.spelling = string(spelling)
	// Streams that are new since the directory was read are not part of the result.
	f.stream, f.lines = f.p.streams.lookUp(f.spelling), nil
	if f.fields, err = fieldsOf(spelling); err != nil || f.stream == nil {
		return err
	}
	if f.fields == nil {
		f.fields = []field{}
	}
	if f.lines = f.of[f.stream]; f.lines == nil {
		f.lines = new(lines)
		f.of[f.stream] = f.lines
	}
	f.entries.Begin(f.stream.Stream)
	return nil
}

// addMetadata makes structured metadata of the fields that are neither the line nor labels of its stream.
func (f *fetch) addMetadata(row []field, text []byte) error {
	m := &f.entries.Meta
	m.Reset()
	for i := range row {
		switch string(row[i].name) {
		case "_time", "_msg", "_stream", "_stream_id":
			continue
		}
		if f.isOwn(&row[i]) {
			continue
		}
		m.Add(row[i].name, row[i].value)
	}
	if why := m.Lost(); why != "" {
		return fmt.Errorf("%w: a line of %s has fields that cannot be shown: %s", model.ErrLimit, f.stream.Labels, why)
	}
	f.labels = f.entries.AppendMetadata(f.labels[:0], text)
	l, set := f.lines, uint32(0)
	if len(f.labels) > 0 {
		key := metadataKey{f.stream, string(f.labels)}
		if set = f.known[key]; set == 0 {
			if err := f.take(2*int64(len(f.labels)) + rowBytes); err != nil {
				return err
			}
			l.metadata = append(l.metadata, model.Labels(key.labels))
			set = uint32(len(l.metadata))
			f.known[key] = set
		}
	}
	l.of = append(l.of, set)
	return nil
}

// isOwn reports whether a field of a line is one of its stream. A field of that name with another value was
// structured metadata.
func (f *fetch) isOwn(x *field) bool {
	for i := range f.fields {
		if o := &f.fields[i]; bytes.Equal(o.name, x.name) && bytes.Equal(o.value, x.value) {
			return true
		}
	}
	return false
}
