package victorialogs

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/logs"
)

// anyStream stands for the streams of lines whose streams were not asked for.
var anyStream = &stream{Stream: &logs.Stream{Labels: model.LabelsOf("sample", "lines of several streams")}}

// sampleCursor walks the streams of a sample. All of its lines are there.
type sampleCursor struct {
	textCursor
	pages []*samplePage
}

// samplePage is the sample of a window. It has its lines until its cursor is closed.
type samplePage struct{ page }

// layOut makes a page of the rows of each window.
func (x *sampling) layOut() (model.TextCursor, error) {
	c := &sampleCursor{textCursor: textCursor{directory: x.directory, at: -1, chunks: map[*stream][]model.TextChunk{}}}
	if !x.streams {
		x.directory.streams.of[""] = anyStream
	}
	for i := range x.windows {
		w := &x.windows[i]
		if len(w.rows) == 0 {
			continue
		}
		if err := c.add(x, w); err != nil {
			c.free()
			return nil, err
		}
		x.drop(w) // the page has them now
	}
	c.sort()
	return c, nil
}

// add adds the chunks of a window.
func (c *sampleCursor) add(x *sampling, w *sampleWindow) error {
	p := &samplePage{page{directory: x.directory, TimeRange: w.TimeRange, certain: true}}
	c.pages = append(c.pages, p)
	f := newFetch(&p.page, whole)
	f.keepsCopies = !x.streams // equal lines may be of several streams
	defer f.release()
	for _, row := range w.rows {
		if x.streams {
			if _, err := x.directory.streams.add(valueOf(row, "_stream")); err != nil {
				return err
			}
		}
		if err := f.add(row); err != nil {
			return err
		}
	}
	c.source.sawLines(len(f.text), len(f.raw))
	p.of, p.has = f.settle(), whole
	c.req.Cost.TextPages.Add(1)
	for st, l := range p.of {
		within := w.TimeRange
		if x.streams {
			within.Min = max(within.Min, hides(c.req, st.Labels))
		}
		from, to := l.within(within)
		if from == to || l.times[from] > c.req.Range.Max || l.times[to-1] < c.req.Range.Min {
			continue
		}
		within = model.TimeRange{Min: l.times[from], Max: l.times[to-1]}
		p.cells = append(p.cells, cell{stream: st, TimeRange: within})
		c.chunks[st] = append(c.chunks[st], model.TextChunk{
			TimeRange: within, Rows: to - from, Bytes: int64(l.ends[to-1] - l.begin(from)),
			StandsFor: float64(w.lines) / float64(len(w.rows)), // both count lines twice that are there twice
			Page:      p, Index: len(p.cells) - 1,
		})
	}
	return nil
}

// ReadText fills dst with the lines of a chunk.
func (p *samplePage) ReadText(_ context.Context, index int, want model.TextWant, dst *model.TextRows) error {
	c := &p.cells[index]
	p.of[c.stream].fill(c.TimeRange, want, dst)
	return nil
}

// Release does nothing: a later read would find no lines. They are there until the cursor is closed.
func (p *samplePage) Release() {}

// Close gives the memory of the sample back.
func (c *sampleCursor) Close() error {
	c.free()
	return c.textCursor.Close()
}

func (c *sampleCursor) free() {
	for _, p := range c.pages {
		p.page.Release()
	}
	c.pages = nil
}
