package remote

import (
	"context"
	"math"
	"sync"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// textCursor is a [model.TextCursor] over an answer. The holder keeps the pages until it is closed.
type textCursor struct {
	series
	order uint64 // of the oldest lines

	onWire []wire.Chunk // of the current series
	pages  []*page
}

// Next moves to the next series. The chunks of series come in the same order as the series.
func (c *textCursor) Next(ctx context.Context) bool {
	c.text = true
	for c.err == nil {
		if c.err = ctx.Err(); c.err != nil {
			return false
		}
		more, fresh, err := c.step(ctx)
		if c.err = err; err != nil || !more {
			return false
		}
		if !fresh {
			c.err = c.st.damaged("series %s comes twice", c.key)
			return false
		}
		if c.onWire, c.chunks, err = wire.TakeChunks(c.chunks, c.onWire[:0]); err != nil {
			c.err = c.st.named(err)
			return false
		}
		if c.err = c.addPages(); c.err != nil {
			return false
		}
		if satisfies(c.labels, c.own) {
			return true
		}
	}
	return false
}

// addPages adds the pages that begin with the current series.
func (c *textCursor) addPages() error {
	for i := range c.onWire {
		switch n := c.onWire[i].Page; {
		case n > len(c.pages):
			return c.st.damaged("page %d comes after page %d", n, len(c.pages)-1)
		case n == len(c.pages):
			c.pages = append(c.pages, &page{st: c.st, number: n})
		}
	}
	return nil
}

// Chunks appends the chunks of the current series.
func (c *textCursor) Chunks(_ context.Context, dst []model.TextChunk) ([]model.TextChunk, error) {
	for _, x := range c.onWire {
		dst = append(dst, model.TextChunk{TimeRange: x.TimeRange, Rows: x.Rows, Bytes: x.Bytes, Order: c.order + x.Order, Page: c.pages[x.Page], Index: x.Index})
	}
	return dst, nil
}

// Close ends the stream, and gives back the memory of pages.
func (c *textCursor) Close() error {
	for _, p := range c.pages {
		p.Release()
	}
	return c.series.Close()
}

// page is a page of a holder. All of its chunks are fetched at once.
type page struct {
	st     *stream
	number int

	mu      sync.Mutex
	loaded  bool
	want    model.TextWant // of what is loaded
	known   bool           // skipped is known
	skipped bool
	chunks  []model.TextRows
	held    int64
}

// columns are the bits that say which columns a page has.
const columns = model.WantLines | model.WantMetadata

// needs returns which columns are to be fetched. Lengths are those of lines. A reader of one column mostly
// wants the other one next, chunk by chunk. Fetching the page for each of these doubled the CPU of queries of
// lines that are not shipped.
func needs(want model.TextWant) model.TextWant {
	if want&model.WantLengths != 0 {
		want |= model.WantLines
	}
	if want&columns != 0 && want&model.WantNoMore == 0 {
		return columns
	}
	return want & columns
}

// Skip asks the holder whether the filter rules the page out, and fetches it otherwise.
func (p *page) Skip(ctx context.Context) (bool, error) {
	if p.st.req.TextFilter == nil {
		return false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return p.skipped, nil
	}
	if err := p.load(ctx, columns, true); err != nil {
		return false, err
	}
	p.known = true
	return p.skipped, nil
}

// ReadText copies what was fetched. Lines are not copied.
func (p *page) ReadText(ctx context.Context, index int, want model.TextWant, dst *model.TextRows) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := needs(want); !p.loaded || want&^p.want != 0 || index >= len(p.chunks) {
		if err := p.load(ctx, want|p.want, false); err != nil {
			return err
		}
	}
	if index >= len(p.chunks) {
		return p.st.damaged("page %d has %d chunks, not more than %d", p.number, len(p.chunks), index)
	}
	from := &p.chunks[index]
	dst.Reset()
	dst.Times = append(dst.Times, from.Times...)
	if want&(model.WantLines|model.WantLengths) != 0 {
		dst.Begin, dst.Ends = from.Begin, append(dst.Ends, from.Ends...)
		if want&model.WantLines != 0 {
			dst.Bytes = from.Bytes
		}
	}
	if want&model.WantMetadata != 0 {
		dst.Metadata, dst.MetadataOf = append(dst.Metadata, from.Metadata...), append(dst.MetadataOf, from.MetadataOf...)
	}
	return nil
}

// Release drops what was fetched.
func (p *page) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop()
}

func (p *page) drop() {
	_ = p.st.req.Quota.TakeBytes(-p.held) // giving back never fails
	p.held, p.loaded, p.chunks, p.want = 0, false, nil, 0
}

// load fetches the page.
func (p *page) load(ctx context.Context, want model.TextWant, filter bool) error {
	p.drop()
	st, err := p.st.s.post(ctx, p.st.peer, wire.PathPage, &wire.PageRequest{Session: p.st.name, Page: p.number, Want: want, Filter: filter}, p.st.req)
	if err != nil {
		if ctx.Err() == nil && passes(err) {
			err = p.st.s.lost(p.st.peer, err)
		}
		return err
	}
	defer st.close()
	st.answering = true
	var head wire.Answer
	if err := st.json(ctx, wire.Head, &head); err != nil {
		return err
	}
	var b model.Batch
	for {
		kind, body, err := st.next(ctx)
		if err != nil {
			p.drop()
			return err
		}
		switch kind {
		case wire.Trailer:
			var e wire.End
			if err := wire.ParseJSON(body, &e); err != nil {
				p.drop()
				return st.named(err)
			}
			st.take(&e)
			p.skipped, p.loaded, p.want = e.Skipped, !e.Skipped, want
			return nil
		case wire.Record:
			err = st.named(journal.DecodeBatch(body, &b))
			if err == nil {
				err = p.add(&b, want)
			}
		default:
			err = st.damaged("expected a record, got a frame of kind %d", kind)
		}
		if err != nil {
			p.drop()
			return err
		}
	}
}

// add adds the chunks of a record.
func (p *page) add(b *model.Batch, want model.TextWant) error {
	n := int64(len(b.Text.Bytes) + 20*len(b.Text.Times))
	if err := p.st.req.Quota.TakeBytes(n); err != nil {
		return err
	}
	p.held += n
	for i := range b.Keys {
		rows, err := textRows(b, i, want)
		if err != nil {
			return p.st.named(err)
		}
		p.chunks = append(p.chunks, rows)
	}
	return nil
}

// textRows returns a copy of the lines of one series of a record.
func textRows(b *model.Batch, i int, want model.TextWant) (out model.TextRows, err error) {
	from, to := int(b.Text.Begin(i)), int(b.Text.End(i))
	out.Times = append([]int64(nil), b.Text.Times[from:to]...)
	size := 0
	lines := make([]model.Line, 0, to-from)
	for k := from; k < to; k++ {
		l, err := model.ParseLine(b.Text.Blob(k))
		if err != nil {
			return out, err
		}
		size += len(l.Text)
		lines = append(lines, l)
	}
	if size > math.MaxUint32 {
		return out, model.ErrLimit
	}
	if want&model.WantLines != 0 {
		out.Bytes, out.Ends = make([]byte, 0, size), make([]uint32, 0, len(lines))
	}
	numbers := map[string]uint32{}
	for k, l := range lines {
		if want&model.WantLines != 0 {
			out.Bytes = append(out.Bytes, l.Text...)
			out.Ends = append(out.Ends, uint32(len(out.Bytes)))
		}
		if len(l.Metadata) == 0 {
			continue
		}
		if out.MetadataOf == nil {
			out.MetadataOf = make([]uint32, len(lines))
		}
		n, ok := numbers[string(l.Metadata)]
		if !ok {
			n = uint32(len(out.Metadata)) + 1
			out.Metadata = append(out.Metadata, append(model.Labels(nil), l.Metadata...))
			numbers[string(l.Metadata)] = n
		}
		out.MetadataOf[k] = n
	}
	return out, nil
}
