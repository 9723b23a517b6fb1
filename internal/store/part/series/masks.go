package series

import (
	"context"
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// WindowSection holds a mask of windows for each series of parts that want it.
var WindowSection = &file.Section{Number: 6, Kind: 4, Name: "windows", Form: file.RankEntries, Needed: func(m *file.Meta) bool { return m.Windows.Count > 0 }}

// maskPage collects the masks of consecutive ranks of one tenant.
type maskPage struct {
	rank0 uint32
	masks []int64
}

func (p *maskPage) full(size int) bool {
	return 8*len(p.masks) >= size || len(p.masks) >= file.MaxPageRanks
}

func (p *maskPage) payload(dst []byte, ints *column.IntCoder) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.rank0))
	dst = binary.AppendUvarint(dst, uint64(len(p.masks)))
	return ints.Append(dst, p.masks)
}

// maskDir is a decoded page of masks.
type maskDir struct {
	rank0 uint32
	masks []int64
	ints  column.IntDecoder
}

func (d *maskDir) decode(payload []byte) error {
	s := column.Scan{Rest: payload}
	d.rank0 = uint32(s.Below(1<<32 - 1))
	n := s.Below(file.MaxPageRanks)
	d.masks = d.ints.Append(d.masks[:0], &s, n)
	if n == 0 {
		s.Fail()
	}
	return s.End("page of windows")
}

// maskCursor reads masks by rank. Ascending ranks are cheap.
type maskCursor struct {
	pages file.Walk
	dir   maskDir
}

// NewMaskCursor returns a cursor over the masks of a file that has them.
func NewMaskCursor(ctx context.Context, r *file.Reader) *maskCursor {
	return &maskCursor{pages: file.NewWalk(ctx, r, WindowSection)}
}

// Mask returns the mask of a rank.
func (c *maskCursor) Mask(rank uint32) (uint64, error) {
	if rank < c.dir.rank0 || rank-c.dir.rank0 >= uint32(len(c.dir.masks)) {
		c.dir.masks = c.dir.masks[:0]
		e, err := c.pages.Cover(rank)
		if err != nil {
			return 0, err
		}
		payload, err := c.pages.Load(e)
		if err != nil {
			return 0, err
		}
		if err := c.dir.decode(payload); err != nil {
			return 0, file.AtPage(e.Addr, err)
		}
		if c.dir.rank0 != e.Rank0 || uint32(len(c.dir.masks)) != e.Ranks {
			c.dir.masks = c.dir.masks[:0]
			return 0, file.AtPage(e.Addr, column.Corrupt("page of windows is not the one that the index names"))
		}
	}
	return uint64(c.dir.masks[rank-c.dir.rank0]), nil
}

// Active returns those of the ranks, ascending, that may have rows within rg, and uses the memory of ranks
// for them. A part without masks knows nothing and returns all.
func Active(ctx context.Context, r *file.Reader, ranks file.Ranks, rg model.TimeRange) (file.Ranks, error) {
	m := r.Meta()
	switch {
	case !m.Range.Overlaps(rg):
		return ranks[:0], nil
	case m.Windows.Count == 0 || rg.Min <= m.Range.Min && m.Range.Max <= rg.Max:
		return ranks, nil
	}
	wanted := m.Windows.MaskOfRange(rg)
	c := NewMaskCursor(ctx, r)
	out := ranks[:0]
	for _, rank := range ranks {
		mask, err := c.Mask(rank)
		if err != nil {
			return nil, err
		}
		if mask&wanted != 0 {
			out = append(out, rank)
		}
	}
	return out, nil
}

// PrefetchMasks prefetches the pages that Active will read.
func PrefetchMasks(ctx context.Context, r *file.Reader, ranks file.Ranks, rg model.TimeRange) error {
	m := r.Meta()
	if m.Windows.Count == 0 || rg.Min <= m.Range.Min && m.Range.Max <= rg.Max {
		return nil
	}
	return r.Announce(ctx, func() ([]file.Addr, error) { return r.RankPages(ctx, nil, WindowSection, ranks, nil) })
}

// maskWriter writes the masks of series.
type maskWriter struct {
	w    *file.Writer
	page maskPage
	ints column.IntCoder
}

// NewMaskWriter returns the writer of the section, which writes nothing unless the part has windows.
func NewMaskWriter(w *file.Writer) file.Hooks {
	if w.Meta().Windows.Count == 0 {
		return file.Hooks{}
	}
	p := &maskWriter{w: w, ints: column.IntCoder{Dense: w.Dense()}}
	return file.Hooks{BeginSeries: p.begin, EndTenant: p.flush}
}

// begin begins the mask of the current series.
func (p *maskWriter) begin(model.Key, model.Labels) error {
	p.settle()
	if p.page.full(p.w.Sizes.PageBytes) {
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

// settle adds the windows of the series before.
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
	p.w.Payload = m.payload(p.w.Payload[:0], &p.ints)
	e := file.Entry{Rank0: m.rank0, Ranks: uint32(len(m.masks))}
	m.masks = m.masks[:0]
	return p.w.AddPage(WindowSection, p.w.TextCodec(), e)
}
