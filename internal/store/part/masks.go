package part

import (
	"context"
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
)

// windowSection holds a mask of windows for each series of parts that want it.
var windowSection = &section{number: 6, kind: 4, name: "windows", form: rankEntries, needed: func(m *Meta) bool { return m.Windows.Count > 0 }}

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

func newMaskCursor(ctx context.Context, r *fileReader) *maskCursor {
	return &maskCursor{pages: newWalk(ctx, r, windowSection)}
}

func (c *maskCursor) at(rank uint32) (uint64, error) {
	if rank < c.dir.rank0 || rank-c.dir.rank0 >= uint32(len(c.dir.masks)) {
		c.dir.masks = c.dir.masks[:0]
		e, err := c.pages.cover(rank)
		if err != nil {
			return 0, err
		}
		payload, err := c.pages.load(e)
		if err != nil {
			return 0, err
		}
		if err := c.dir.open(payload); err != nil {
			return 0, atPage(e.addr, err)
		}
		if c.dir.rank0 != e.rank0 || uint32(len(c.dir.masks)) != e.ranks {
			c.dir.masks = c.dir.masks[:0]
			return 0, atPage(e.addr, corrupt("page of windows is not the one that the index names"))
		}
	}
	return uint64(c.dir.masks[rank-c.dir.rank0]), nil
}

// activeRanks returns those of the ranks, ascending, that may have rows within rg, and uses the memory of ranks for them. A
// part without masks knows nothing and returns all.
func activeRanks(ctx context.Context, r *fileReader, ranks Ranks, rg model.TimeRange) (Ranks, error) {
	m := r.Meta()
	switch {
	case !m.Range.Overlaps(rg):
		return ranks[:0], nil
	case m.Windows.Count == 0 || rg.Min <= m.Range.Min && m.Range.Max <= rg.Max:
		return ranks, nil
	}
	wanted := m.Windows.mask(rg)
	c := newMaskCursor(ctx, r)
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

// prefetchMasks fetches what activeRanks will read.
func prefetchMasks(ctx context.Context, r *fileReader, ranks Ranks, rg model.TimeRange) error {
	m := r.Meta()
	if m.Windows.Count == 0 || rg.Min <= m.Range.Min && m.Range.Max <= rg.Max {
		return nil
	}
	return r.Announce(ctx, func() ([]Addr, error) { return r.RankPages(ctx, nil, windowSection, ranks, nil) })
}

// maskWriter writes the masks of series.
type maskWriter struct {
	w    *fileWriter
	page maskPage
	ints intCoder
}

// newMaskWriter returns the writer of the section, which writes nothing unless the part has windows.
func newMaskWriter(w *fileWriter) sectionHooks {
	if w.Meta().Windows.Count == 0 {
		return sectionHooks{}
	}
	p := &maskWriter{w: w, ints: intCoder{dense: w.Dense()}}
	return sectionHooks{beginSeries: p.begin, endTenant: p.flush}
}

// begin begins the mask of the current series.
func (p *maskWriter) begin(model.Key, model.Labels) error {
	p.settle()
	if p.page.full(p.w.sizes.page) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if len(p.page.masks) == 0 {
		p.page.rank0 = p.w.Rank()
	}
	p.page.masks = append(p.page.masks, 0)
	return nil
}

// settle enters the windows of the series before.
func (p *maskWriter) settle() {
	if n := len(p.page.masks); n > 0 {
		p.page.masks[n-1] |= int64(p.w.TakeMask())
	}
}

func (p *maskWriter) flush() error {
	p.settle()
	m := &p.page
	if len(m.masks) == 0 {
		return nil
	}
	p.w.payload = m.payload(p.w.payload[:0], &p.ints)
	a, err := p.w.Page(p.w.TextCodec())
	if err != nil {
		return err
	}
	e := pageEntry{addr: a, rank0: m.rank0, ranks: uint32(len(m.masks))}
	m.masks = m.masks[:0]
	return p.w.Enter(windowSection, e)
}
