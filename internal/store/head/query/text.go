package query

import (
	"context"
	"fmt"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/rows"
	"github.com/shaledb/shale/internal/store/part"
)

// firstTextOrder is above the order numbers of all blocks: the rows of the head are newer.
const firstTextOrder = 1 << 62

// SelectText returns one cursor over the series with lines that satisfy the request.
func (s *Source) SelectText(ctx context.Context, req *model.Request) ([]model.TextCursor, error) {
	c, err := s.openText(ctx, req)
	if err != nil {
		return nil, err
	}
	return []model.TextCursor{c}, nil
}

func (s *Source) openText(ctx context.Context, req *model.Request) (*textCursor, error) {
	c := &textCursor{selection: s.pin(req)}
	if err := c.open(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// textCursor joins the label store with the lines of parts and runs, all in the order of keys. Each part and
// run has its order, so that chunks of several may overlap.
type textCursor struct {
	selection
	sources []placedText      // oldest first
	chunks  []model.TextChunk // of the current series
}

// textSource finds the chunks of keys that come in ascending order.
type textSource interface {
	// appendChunks appends the chunks of a key that may have rows in the request's range, by time.
	appendChunks(ctx context.Context, k model.Key, dst []model.TextChunk) ([]model.TextChunk, error)
}

// placedText is a source at its place in the journal.
type placedText struct {
	textSource
	origin
	wrap func(error) error // adds its name to errors
}

// open finds the parts and runs with lines of the request. Parts come before runs, and older ones before
// newer ones.
func (c *textCursor) open(ctx context.Context) error {
	req := c.req
	for _, p := range c.view.DataParts {
		t := p.Reader.Meta().Tenant(req.Tenant)
		if t == nil || t.Text == 0 || !t.Range.Overlaps(req.Range) {
			continue
		}
		req.Cost.HeadParts.Add(1)
		r := p.ReaderFor(req, c.pages)
		order := uint64(firstTextOrder + len(c.sources))
		text := &partText{newPartKeys(ctx, r, p, req.Tenant), r.TextAt(ctx, req, nil, order, p.WrapError)}
		c.oldest = min(c.oldest, t.Range.Min)
		c.sources = append(c.sources, placedText{text, origin{p.Info.SeqHi, t.Range.Min}, p.WrapError})
	}
	for _, r := range c.view.Runs {
		t := r.Tenant(req.Tenant)
		if t == nil || len(t.Families[model.Text].Keys) == 0 || !t.Families[model.Text].Range.Overlaps(req.Range) {
			continue
		}
		req.Cost.HeadBuffers.Add(1)
		order := uint64(firstTextOrder + len(c.sources))
		text := &bufferedText{rows: &t.Families[model.Text], blobs: r.Blobs, req: req, order: order}
		oldest := t.Families[model.Text].Range.Min
		c.oldest = min(c.oldest, oldest)
		c.sources = append(c.sources, placedText{text, origin{r.SeqHi, oldest}, text.named})
	}
	if len(c.sources) == 0 {
		return nil
	}
	return c.openSeries(ctx)
}

// Next moves to the next series that may have lines in the range.
func (c *textCursor) Next(ctx context.Context) bool {
	for c.err == nil {
		if c.err = ctx.Err(); c.err != nil {
			return false
		}
		var more bool
		if more, c.err = c.series.next(); !more || c.err != nil {
			return false
		}
		c.chunks = c.chunks[:0]
		if c.mayHide() {
			c.hidden.setSeries(c.fences, c.req.Horizon, c.oldest, c.series.labels)
		}
		for _, s := range c.sources {
			from := len(c.chunks)
			if c.chunks, c.err = s.appendChunks(ctx, c.series.key, c.chunks); c.err == nil {
				c.chunks, c.err = c.hidden.cuts(s.origin).Chunks(ctx, c.chunks, from, s.wrap)
			}
			if c.err != nil {
				return false
			}
		}
		if len(c.chunks) > 0 {
			return true
		}
	}
	return false
}

func (c *textCursor) Key() model.Key       { return c.series.key }
func (c *textCursor) Labels() model.Labels { return c.series.labels }

// Chunks appends the chunks that Next has found.
func (c *textCursor) Chunks(_ context.Context, dst []model.TextChunk) ([]model.TextChunk, error) {
	return append(dst, c.chunks...), nil
}

// Close releases the parts and the quota.
func (c *textCursor) Close() error {
	c.sources, c.chunks = nil, nil
	return c.selection.Close()
}

// textSeries are the series of a textCursor without lines.
type textSeries struct{ *textCursor }

// AppendRows appends nothing: lines are read as chunks.
func (textSeries) AppendRows(context.Context, *model.Rows) error { return nil }

// partText is the text of a data part.
type partText struct {
	partKeys
	text *part.TextCursor
}

func (p *partText) appendChunks(ctx context.Context, k model.Key, dst []model.TextChunk) ([]model.TextChunk, error) {
	rank, err := p.rank(k)
	if rank == noRank || err != nil {
		return dst, err
	}
	dst, err = p.text.Chunks(ctx, uint32(rank), dst)
	return dst, p.part.WrapError(err)
}

// bufferedText is the text of a run. Its pages are the lines of the selected series, cut by size.
type bufferedText struct {
	rows  *rows.FamilyRows
	blobs rows.Blobs
	req   *model.Request
	order uint64
	at    int
	page  *bufferedPage // the last one, to which more chunks may be added; its chunks have bytes
	bytes int
}

// The limits of a chunk of a run, unless all its rows have one time, and of a page.
const (
	bufferedChunkRows = 1 << 12
	bufferedPageBytes = 256 << 10
)

func (t *bufferedText) appendChunks(_ context.Context, k model.Key, dst []model.TextChunk) ([]model.TextChunk, error) {
	from, to := t.rows.Seek(t.at, k)
	t.at = to
	times, rg := t.rows.Times, t.req.Range
	from += sort.Search(to-from, func(i int) bool { return times[from+i] >= rg.Min })
	to = from + sort.Search(to-from, func(i int) bool { return times[from+i] > rg.Max })
	for from < to {
		end, size := from, 0
		for end < to && (end == from || times[end] == times[end-1] || size < bufferedPageBytes && end-from < bufferedChunkRows) {
			size += t.rows.LineBytes(end, end+1)
			end++
		}
		dst = append(dst, t.chunk(from, end, size))
		from = end
	}
	return dst, nil
}

func (t *bufferedText) chunk(from, to, size int) model.TextChunk {
	if t.page == nil || t.bytes+size > bufferedPageBytes {
		t.page, t.bytes = &bufferedPage{of: t}, 0
		t.req.Cost.TextPages.Add(1)
	}
	t.bytes += size
	c := model.TextChunk{
		TimeRange: model.TimeRange{Min: t.rows.Times[from], Max: t.rows.Times[to-1]},
		Rows:      to - from, Order: t.order, Page: t.page, Index: t.page.add(from, to),
	}
	for _, ref := range t.rows.Values[from:to] {
		if l, err := model.SplitLine(t.blobs.Blob(ref)); err == nil {
			c.Bytes += int64(len(l.Text))
		}
	}
	return c
}

// named says in an error that it comes from a buffer.
func (t *bufferedText) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("buffer: %w", err)
}
