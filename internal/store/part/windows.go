package part

import (
	"context"
	"encoding/binary"
	"math"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// Windows divide time for the masks of a block, which say of each series in which windows it has rows. A block of a day
// has many series that lived for an hour: a reader leaves them out without a look at their rows. Window i is [Start +
// i*Length, Start + (i+1)*Length), except that the first has all time before it too, and the last all after: so there is
// no row outside, and nothing to be said about one.
type Windows struct {
	// Start is in Unix nanoseconds, Length in nanoseconds.
	Start, Length int64
	// Count is 1 to 64; 0 means that there are no masks.
	Count int
}

const maxWindows = 64

// valid reports whether the windows can be stored: none, or such that their end is a time.
func (w Windows) valid() bool {
	if w.Count == 0 {
		return w == Windows{}
	}
	return w.Count > 0 && w.Count <= maxWindows && w.Length > 0 &&
		uint64(w.Length) <= (uint64(math.MaxInt64)-uint64(w.Start))/uint64(w.Count)
}

// index returns the window of a time.
func (w Windows) index(t int64) int {
	if t < w.Start {
		return 0
	}
	return int(min((uint64(t)-uint64(w.Start))/uint64(w.Length), uint64(w.Count-1)))
}

// mask returns the windows that share an instant with a range, lowest bit first.
func (w Windows) mask(rg model.TimeRange) uint64 {
	if rg.Min > rg.Max {
		return 0
	}
	return ^uint64(0) << w.index(rg.Min) & (^uint64(0) >> (63 - w.index(rg.Max)))
}

// of returns the windows of ascending times.
func (w Windows) of(times []int64) uint64 {
	mask := uint64(0)
	for len(times) > 0 {
		k := w.index(times[0])
		mask |= 1 << k
		if k == w.Count-1 {
			break
		}
		end := w.Start + int64(k+1)*w.Length
		if times[len(times)-1] < end {
			break
		}
		times = times[sort.Search(len(times), func(i int) bool { return times[i] >= end }):]
	}
	return mask
}

// ofSeries returns the windows of all rows of a series.
func (w Windows) ofSeries(rows *model.SeriesRows) uint64 {
	mask := uint64(0)
	for _, f := range model.PointFamilies() {
		mask |= w.of(rows.Family(f).Times)
	}
	return mask
}

// maskPage collects the masks of consecutive ranks of one tenant.
type maskPage struct {
	rank0 uint32
	masks []int64
}

func (p *maskPage) full(size int) bool { return 8*len(p.masks) >= size || len(p.masks) >= maxPageRanks }

func (p *maskPage) payload(dst []byte, ints *intCoder) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.rank0))
	dst = binary.AppendUvarint(dst, uint64(len(p.masks)))
	return ints.append(dst, p.masks)
}

// maskDir is a decoded page of masks.
type maskDir struct {
	rank0 uint32
	masks []int64
	ints  intDecoder
}

func (d *maskDir) open(payload []byte) error {
	s := scan{b: payload}
	d.rank0 = uint32(s.below(1<<32 - 1))
	n := s.below(maxPageRanks)
	d.masks = d.ints.append(d.masks[:0], &s, n)
	if n == 0 {
		s.fail()
	}
	return s.end("page of windows")
}

// maskCursor reads masks by rank. Ascending ranks are cheap.
type maskCursor struct {
	pages rankWalk
	dir   maskDir
}

func (c *maskCursor) at(rank uint32) (uint64, error) {
	if rank < c.dir.rank0 || rank-c.dir.rank0 >= uint32(len(c.dir.masks)) {
		c.dir.masks = c.dir.masks[:0]
		e, err := c.pages.seek(rank)
		if err != nil {
			return 0, err
		}
		payload, err := c.pages.load(e)
		if err != nil {
			return 0, err
		}
		if err := c.dir.open(payload); err != nil {
			return 0, at(e, err)
		}
		if c.dir.rank0 != e.rank0 || uint32(len(c.dir.masks)) != e.ranks {
			c.dir.masks = c.dir.masks[:0]
			return 0, at(e, corrupt("page of windows is not the one that the index names"))
		}
	}
	return uint64(c.dir.masks[rank-c.dir.rank0]), nil
}

// Active returns those of the ranks, ascending, that may have rows within rg, and uses the memory of ranks for them. A
// part without masks knows nothing and returns all.
func (r *Reader) Active(ctx context.Context, ranks Ranks, rg model.TimeRange) (Ranks, error) {
	m := r.Meta()
	switch {
	case !m.Range.Overlaps(rg):
		return ranks[:0], nil
	case m.Windows.Count == 0 || rg.Min <= m.Range.Min && m.Range.Max <= rg.Max:
		return ranks, nil
	}
	wanted := m.Windows.mask(rg)
	c := maskCursor{pages: rankWalk{ctx: ctx, r: r, section: windowSection}}
	out := ranks[:0]
	for _, rank := range ranks {
		mask, err := c.at(rank)
		if err != nil {
			return nil, err
		}
		if mask&wanted != 0 {
			out = append(out, rank)
		}
	}
	return out, nil
}
