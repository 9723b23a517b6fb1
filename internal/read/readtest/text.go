package readtest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// Line is a row of text.
type Line struct {
	Time     int64
	Text     string
	Metadata model.Labels
}

// textSeries are the lines of a series, sorted by time, equal times in the order of arrival, without
// duplicates.
type textSeries struct {
	labels model.Labels
	lines  []Line
}

// TextReads counts the calls that the pages of a source have received.
type TextReads struct {
	Pages, Skipped, Lines, Fetched atomic.Int64
}

// SetTextPage sets the most lines of a chunk (default 5), and the number of neighbouring series that share
// a page (default 3).
func (m *Memory) SetTextPage(lines, chunks int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chunkLines, m.pageChunks = lines, chunks
}

// TextReads returns the counters of the source.
func (m *Memory) TextReads() *TextReads { return &m.reads }

// AddText adds lines to the series with the given key in the tenant's logs, in the order of arrival.
func (m *Memory) AddText(tenant string, k model.Key, l model.Labels, lines ...Line) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addTextLocked(id{tenant, model.Logs, k}, l, lines)
}

func (m *Memory) addTextLocked(at id, l model.Labels, lines []Line) {
	s := m.text[at]
	if s == nil {
		s = &textSeries{}
		m.text[at] = s
	}
	if s.labels == nil {
		s.labels = slices.Clone(l)
	}
	for _, x := range lines {
		if !slices.ContainsFunc(s.lines, x.equal) {
			s.lines = append(s.lines, x)
		}
	}
	slices.SortStableFunc(s.lines, func(a, b Line) int { return cmp.Compare(a.Time, b.Time) })
}

// applyText adds the text of series i of a batch.
func (m *Memory) applyText(b *model.Batch, i int, l model.Labels) {
	var lines []Line
	for row := b.Text.Begin(i); row < b.Text.End(i); row++ {
		x, err := model.SplitLine(b.Text.Blob(int(row)))
		if err != nil {
			panic(err) // metadata of a batch has been checked
		}
		lines = append(lines, Line{b.Text.Times[row], string(x.Text), slices.Clone(x.Metadata)})
	}
	if len(lines) > 0 {
		m.addTextLocked(id{b.Tenant, b.Signal, b.Keys[i]}, l, lines)
	}
}

// hasText reports whether a line of the series lies in a range.
func (s *textSeries) hasText(r model.TimeRange) bool {
	return slices.ContainsFunc(s.lines, func(l Line) bool { return r.Contains(l.Time) })
}

// SelectText returns one cursor.
func (m *Memory) SelectText(_ context.Context, req *model.Request) ([]model.TextCursor, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.fail.Select != nil {
		return nil, m.fail.Select
	}
	c := &textCursor{m: m, req: req, at: -1, fail: m.fail}
	for at, s := range m.text {
		if at.tenant == req.Tenant && at.signal == req.Signal && matches(req.Matchers, s.labels) && s.hasText(req.Range) {
			c.series = append(c.series, textHeld{key: at.key, labels: s.labels, lines: slices.Clone(s.lines)})
		}
	}
	slices.SortFunc(c.series, func(a, b textHeld) int { return a.key.Compare(b.key) })
	c.paginate(m.chunkLines, m.pageChunks)
	m.open.Add(1)
	return []model.TextCursor{c}, nil
}

type textHeld struct {
	key    model.Key
	labels model.Labels
	lines  []Line
	chunks []model.TextChunk
}

type textCursor struct {
	m      *Memory
	req    *model.Request
	series []textHeld
	at     int
	fail   Failure
	err    error
	closed atomic.Bool
}

// paginate cuts the lines into chunks of different lengths, and puts some neighbouring chunks into one
// page.
func (c *textCursor) paginate(most, share int) {
	var p *textPage
	for i := range c.series {
		h := &c.series[i]
		for from, n := 0, 1; from < len(h.lines); n++ {
			to := min(from+1+n%most, len(h.lines))
			if p == nil || len(p.chunks) == share {
				p = &textPage{c: c}
			}
			part := h.lines[from:to]
			chunk := model.TextChunk{
				TimeRange: model.TimeRange{Min: part[0].Time, Max: part[len(part)-1].Time},
				Rows:      len(part), Order: c.m.seq, Page: p, Index: len(p.chunks),
			}
			for _, l := range part {
				chunk.Bytes += int64(len(l.Text))
			}
			p.chunks = append(p.chunks, part)
			if chunk.Overlaps(c.req.Range) {
				h.chunks = append(h.chunks, chunk)
			}
			from = to
		}
	}
}

func (c *textCursor) Next(ctx context.Context) bool {
	if c.err == nil {
		c.err = ctx.Err()
	}
	if c.at++; c.err == nil && c.at > 0 {
		c.err = c.fail.Next
	}
	return c.err == nil && c.at < len(c.series)
}

func (c *textCursor) Key() model.Key       { return c.series[c.at].key }
func (c *textCursor) Labels() model.Labels { return c.series[c.at].labels }
func (c *textCursor) Err() error           { return c.err }

func (c *textCursor) Chunks(_ context.Context, dst []model.TextChunk) ([]model.TextChunk, error) {
	if c.at > 0 && c.fail.Rows != nil {
		return dst, c.fail.Rows
	}
	chunks := c.series[c.at].chunks
	for _, x := range chunks {
		if x.Page.(*textPage).counted.CompareAndSwap(false, true) {
			c.req.Cost.TextPages.Add(1)
		}
	}
	return append(dst, chunks...), nil
}

func (c *textCursor) Close() error {
	if !c.closed.Swap(true) {
		c.m.open.Add(-1)
	}
	return nil
}

// textPage is a page of chunks. From the first read until Release it charges the quota for the bytes of its
// lines, once.
type textPage struct {
	c                *textCursor
	chunks           [][]Line
	counted, skipped atomic.Bool
	held             atomic.Int64
}

// Skip reads all lines, so its result is exact.
func (p *textPage) Skip(ctx context.Context) (bool, error) {
	if err := p.usable(ctx); err != nil {
		return false, err
	}
	if p.c.req.TextFilter == nil {
		return false, nil
	}
	for _, lines := range p.chunks {
		for i := range lines {
			if satisfies(&lines[i], p.c.req.TextFilter) {
				return false, nil
			}
		}
	}
	// Two workers may ask at the same time, but a page counts once.
	if p.skipped.CompareAndSwap(false, true) {
		p.c.m.reads.Skipped.Add(1)
		p.c.req.Cost.TextPagesSkipped.Add(1)
	}
	return true, nil
}

func (p *textPage) usable(ctx context.Context) error {
	if p.c.closed.Load() {
		panic("BUG: a page is read after its cursor was closed")
	}
	return ctx.Err()
}

func satisfies(l *Line, f *model.TextFilter) bool {
	for _, c := range f.Clauses {
		holds := func(lit model.TextLiteral) bool {
			in, want := l.Text, lit.Value
			if lit.Name != "" {
				in = string(l.Metadata.Get(lit.Name))
			}
			if lit.Fold {
				in, want = strings.ToLower(in), strings.ToLower(want)
			}
			if lit.Name != "" {
				return in == want
			}
			return strings.Contains(in, want)
		}
		if !slices.ContainsFunc(c.Any, holds) {
			return false
		}
	}
	return true
}

func (p *textPage) ReadText(ctx context.Context, index int, want model.TextWant, dst *model.TextRows) error {
	if err := p.usable(ctx); err != nil {
		return err
	}
	if p.c.fail.Text != nil {
		return p.c.fail.Text
	}
	var bytes int64
	for _, l := range p.chunks[index] {
		bytes += int64(len(l.Text))
	}
	if p.held.CompareAndSwap(0, max(bytes, 1)) {
		if err := p.c.req.Quota.TakeBytes(max(bytes, 1)); err != nil {
			p.held.Store(0)
			return err
		}
	}
	p.c.m.reads.Pages.Add(1)
	p.c.m.reads.Lines.Add(int64(len(p.chunks[index])))
	fill(dst, p.chunks[index], want)
	return nil
}

// ReadTextEnd reads a chunk and leaves out the lines that are not wanted.
func (p *textPage) ReadTextEnd(ctx context.Context, index int, want model.TextWant, first func(times []int64) int, dst *model.TextRows) (int, error) {
	if err := p.ReadText(ctx, index, want, dst); err != nil {
		return 0, err
	}
	from := first(dst.Times)
	if from <= 0 || from >= len(dst.Times) || want&model.WantLines == 0 {
		return 0, nil
	}
	left := dst.Ends[from-1]
	dst.Bytes = dst.Bytes[left:]
	for i, end := range dst.Ends {
		dst.Ends[i] = max(end, left) - left
	}
	return from, nil
}

// fill copies lines into columns, without the columns that the caller does not want, as a real source does.
func fill(dst *model.TextRows, lines []Line, want model.TextWant) {
	dst.Reset()
	var bytes []byte
	length := 0
	hasMetadata := slices.ContainsFunc(lines, func(l Line) bool { return len(l.Metadata) > 0 })
	for _, l := range lines {
		dst.Times = append(dst.Times, l.Time)
		if want&model.WantLines != 0 {
			bytes = append(bytes, l.Text...)
		}
		if want&(model.WantLines|model.WantLengths) != 0 {
			length += len(l.Text)
			dst.Ends = append(dst.Ends, uint32(length))
		}
		if want&model.WantMetadata == 0 || !hasMetadata {
			continue
		}
		of := uint32(0)
		if len(l.Metadata) > 0 {
			at := slices.IndexFunc(dst.Metadata, func(m model.Labels) bool { return string(m) == string(l.Metadata) })
			if at < 0 {
				at = len(dst.Metadata)
				dst.Metadata = append(dst.Metadata, l.Metadata)
			}
			of = uint32(at) + 1
		}
		dst.MetadataOf = append(dst.MetadataOf, of)
	}
	dst.Bytes = bytes
}

// Prefetch counts the pages that are announced.
func (p *textPage) Prefetch(_ context.Context, pages []model.TextPage, _ model.TextWant) []model.TextPage {
	p.c.m.reads.Fetched.Add(1)
	return pages[1:]
}

func (p *textPage) Release() {
	_ = p.c.req.Quota.TakeBytes(-p.held.Swap(0)) // giving back does not fail
}
