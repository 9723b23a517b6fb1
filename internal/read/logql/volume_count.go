package logql

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/selection"
)

// volumeCount counts the lines of one stream after another.
type volumeCount struct {
	req    *model.Request
	within model.TimeRange
	cuts   []int64

	volume    StreamVolume
	intervals []IntervalVolume // one more than cuts; those that no line of the stream lies in are 0
	last      int              // the last interval with lines

	rows    model.TextRows
	merging volumeMerge
	pages   []model.TextPage // that have been read and not released
}

const (
	// volumeRowBytes is the memory of the time and the length of a line, and volumeSumBytes about that of a sum
	// in a table.
	volumeRowBytes = 12
	volumeSumBytes = 64
	// heldPages bounds the pages that are kept for the next streams, which may have lines in the same ones.
	heldPages = 8
)

func newVolumeCount(req *model.Request, within model.TimeRange, cuts []int64) *volumeCount {
	return &volumeCount{
		req: req, within: within, cuts: cuts, intervals: make([]IntervalVolume, len(cuts)+1),
		merging: volumeMerge{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}},
	}
}

// announce announces the pages whose rows will probably be read.
func (c *volumeCount) announce(ctx context.Context, chunks []model.TextChunk) {
	var pages []model.TextPage
	for i := range chunks {
		if !c.isWhole(&chunks[i]) && (len(pages) == 0 || pages[len(pages)-1] != chunks[i].Page) {
			pages = append(pages, chunks[i].Page)
		}
	}
	read.PrefetchText(ctx, pages, model.WantLengths)
}

// interval returns the number of the interval that a time lies in.
func (c *volumeCount) interval(t int64) int {
	return sort.Search(len(c.cuts), func(i int) bool { return c.cuts[i] > t })
}

// isWhole reports whether all rows of a chunk lie in one interval.
func (c *volumeCount) isWhole(x *model.TextChunk) bool {
	return c.within.Contains(x.Min) && c.within.Contains(x.Max) && c.interval(x.Min) == c.interval(x.Max)
}

// stream counts the chunks of a stream, which it reorders. The result is valid until the next call.
func (c *volumeCount) stream(ctx context.Context, chunks []model.TextChunk) (*StreamVolume, error) {
	if c.volume.Lines > 0 {
		clear(c.intervals[c.volume.First : c.last+1])
	}
	c.volume = StreamVolume{Volume: Volume{Streams: 1}}
	chunks = slices.DeleteFunc(chunks, func(x model.TextChunk) bool { return x.Rows == 0 || !x.Overlaps(c.within) })
	slices.SortStableFunc(chunks, func(a, b model.TextChunk) int { return cmp.Compare(a.Min, b.Min) })
	for i := 0; i < len(chunks); {
		n := selection.Overlapping(chunks[i:])
		var err error
		if n == 1 {
			err = c.single(ctx, &chunks[i])
		} else {
			err = c.merge(ctx, chunks[i:i+n])
		}
		if err != nil {
			return nil, err
		}
		i += n
	}
	c.volume.Intervals = c.intervals[c.volume.First : c.last+1]
	return &c.volume, nil
}

// add adds lines to an interval. Intervals come in any order.
func (c *volumeCount) add(interval, lines int, bytes uint64) {
	if c.volume.Lines == 0 {
		c.volume.First, c.last = interval, interval
	}
	c.volume.First, c.last = min(c.volume.First, interval), max(c.last, interval)
	c.intervals[interval].Bytes += bytes
	c.intervals[interval].Lines += uint64(lines)
	c.volume.Lines += uint64(lines)
	c.volume.Bytes += bytes
}

// single counts a chunk that shares no time with another.
func (c *volumeCount) single(ctx context.Context, x *model.TextChunk) error {
	if c.isWhole(x) {
		c.volume.Chunks++
		c.add(c.interval(x.Min), x.Rows, uint64(x.Bytes))
		return nil
	}
	if err := c.read(ctx, x, model.WantLengths, &c.rows); err != nil {
		return err
	}
	from, to := c.clip(c.rows.Times)
	if from < to {
		c.volume.Chunks++
	}
	c.addRows(&c.rows, from, to)
	return nil
}

// clip returns which of ascending times are within the range.
func (c *volumeCount) clip(times []int64) (from, to int) {
	from = sort.Search(len(times), func(i int) bool { return times[i] >= c.within.Min })
	to = sort.Search(len(times), func(i int) bool { return times[i] > c.within.Max })
	return from, max(from, to)
}

// addRows adds the rows [from, to).
func (c *volumeCount) addRows(rows *model.TextRows, from, to int) {
	for from < to {
		n, next := c.interval(rows.Times[from]), to
		if n < len(c.cuts) {
			next = from + sort.Search(to-from, func(i int) bool { return rows.Times[from+i] >= c.cuts[n] })
		}
		begin := rows.Begin
		if from > 0 {
			begin = rows.Ends[from-1]
		}
		c.add(n, next-from, uint64(rows.Ends[next-1]-begin))
		from = next
	}
}

// read reads a chunk, and releases the page that was read first if too many are held.
func (c *volumeCount) read(ctx context.Context, x *model.TextChunk, want model.TextWant, dst *model.TextRows) error {
	if !slices.Contains(c.pages, x.Page) {
		if len(c.pages) == heldPages {
			c.pages[0].Release()
			c.pages = slices.Delete(c.pages, 0, 1)
		}
		c.pages = append(c.pages, x.Page)
	}
	return x.Page.ReadText(ctx, x.Index, want, dst)
}

// release releases all pages.
func (c *volumeCount) release() {
	for _, p := range c.pages {
		p.Release()
	}
	c.pages = nil
}
