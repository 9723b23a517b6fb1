package victorialogs

import (
	"cmp"
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// pageRows is how many lines a page has at least, if there are as many: a page is a request.
const pageRows = 20_000

// SelectText returns a cursor over the streams of a request. It asks for the directory only: lines are
// fetched when a chunk is read.
func (s *Source) SelectText(ctx context.Context, req *model.Request) ([]model.TextCursor, error) {
	a, ok := s.account(req)
	if !ok {
		return nil, nil
	}
	filter := s.filterOf(req)
	d := s.newestOf(req)
	counted := d != nil
	if !counted {
		d = &directory{source: s, account: a, req: req, filter: filter, streams: newStreamSet(s, req)}
	}
	if req.Sample != nil && req.Cells == nil {
		c, err := d.sample(ctx)
		if c != nil {
			return []model.TextCursor{c}, nil
		}
		if d.forget(); err != nil {
			return nil, err
		}
	}
	c := &textCursor{directory: d, at: -1, chunks: map[*stream][]model.TextChunk{}}
	b := dividing(req.Range)
	if req.Cells != nil {
		b = counting(req.Range, req.Cells)
	}
	var err error
	if req.Cells != nil {
		if d.unproven = req.Range; !req.Cost.Fresh {
			d.unproven = s.watch.Unproven(ctx, a.Account, req.Range)
		}
		if counted, err = d.group(ctx, b); !counted {
			d.forget()
		}
	}
	if !counted && err == nil {
		err = d.read(ctx, req.Range, b)
	}
	if err == nil {
		err = c.layOut(ctx)
	}
	if err != nil {
		d.release()
		return nil, err
	}
	return []model.TextCursor{c}, nil
}

// textCursor walks the streams of a directory.
type textCursor struct {
	*directory
	all    []*stream
	chunks map[*stream][]model.TextChunk
	at     int
}

// layOut makes pages of the cells of neighbouring buckets, and chunks of the cells.
func (c *textCursor) layOut(ctx context.Context) error {
	cells := c.cells
	slices.SortFunc(cells, func(a, b cell) int { return cmp.Or(cmp.Compare(a.bucket, b.bucket), a.Key.Compare(b.Key)) })
	for i := 0; i < len(cells); {
		n, rows := i, int64(0)
		for n < len(cells) && rows < pageRows {
			// A bucket is in one page as a whole: its cells share the time.
			for bucket := cells[n].bucket; n < len(cells) && cells[n].bucket == bucket; n++ {
				rows += cells[n].rows
			}
		}
		if err := c.addPage(ctx, cells[i:n]); err != nil {
			return err
		}
		i = n
	}
	c.sort()
	return nil
}

// sort puts the streams that have chunks in the order of their keys.
func (c *textCursor) sort() {
	for st := range c.chunks {
		c.all = append(c.all, st)
	}
	slices.SortFunc(c.all, func(a, b *stream) int { return a.Key.Compare(b.Key) })
}

// addPage adds the chunks of a page.
func (c *textCursor) addPage(ctx context.Context, cells []cell) error {
	slices.SortFunc(cells, func(a, b cell) int { return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.Min, b.Min)) })
	if c.req.Cells == nil { // there is no use for chunks of the same page
		for i := range cells {
			cells[i].bucket = 0
		}
		cells = joined(cells)
	}
	p := newPage(c.directory, cells)
	c.req.Cost.TextPages.Add(1)
	if c.req.Cells != nil && !p.certain {
		// Lines that are there twice count once, which only they themselves tell.
		if err := p.resolve(ctx); err != nil {
			return err
		}
	}
	for i := range p.cells {
		x := &p.cells[i]
		if x.rows == 0 {
			continue
		}
		c.chunks[x.stream] = append(c.chunks[x.stream], model.TextChunk{
			TimeRange: x.TimeRange, Rows: int(x.rows), Bytes: x.bytes, Page: p, Index: i,
		})
	}
	return nil
}

func (c *textCursor) Next(context.Context) bool {
	c.at++
	return c.at < len(c.all)
}

func (c *textCursor) Key() model.Key       { return c.all[c.at].Key }
func (c *textCursor) Labels() model.Labels { return c.all[c.at].Labels }
func (c *textCursor) Err() error           { return nil }

// Chunks appends the chunks of the stream.
func (c *textCursor) Chunks(_ context.Context, dst []model.TextChunk) ([]model.TextChunk, error) {
	return append(dst, c.chunks[c.all[c.at]]...), nil
}

// Close gives the memory of the directory back.
func (c *textCursor) Close() error {
	c.release()
	c.all, c.chunks = nil, nil
	return nil
}
