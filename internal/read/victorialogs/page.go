package victorialogs

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/shaledb/shale/internal/model"
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
	defer f.release()
	err := p.source.client.query(ctx, p.account, kindLines, text, f.add)
	p.source.metrics.rows.Add(float64(len(f.raw)))
	if err == nil {
		err = p.keepLocked(f, want)
	}
	if err == nil && want == whole {
		p.source.sawLines(len(f.text), len(f.raw))
	}
	if err != nil {
		p.releaseLocked()
	}
	return err
}

// firstLineBytes is about what a line has while none was read.
const firstLineBytes = 500

// sawLines says what some lines have.
func (s *Source) sawLines(bytes, lines int) {
	if lines > 0 {
		before := s.lineBytes.Load() // that of another page may be lost
		s.lineBytes.Store(before + (int64(bytes/lines)-before)/4)
	}
}

// keepLocked sorts what was fetched and checks that all lines of the directory are there.
func (p *page) keepLocked(f *fetch, want columns) error {
	p.of = f.settle()
	for i := range p.cells {
		c := &p.cells[i]
		l := p.of[c.stream]
		if l == nil {
			l = new(lines)
			p.of[c.stream] = l
		}
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
}

func (l *lines) begin(i int) uint32 {
	if i == 0 {
		return 0
	}
	return l.ends[i-1]
}

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
