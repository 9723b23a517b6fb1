package part

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// SamplesAt reads rows within rg by rank. Ascending ranks are cheap; pages without a row in rg are not read.
func (r *Reader) SamplesAt(ctx context.Context, rg model.TimeRange) *SampleCursor {
	return &SampleCursor{pages: rankWalk{ctx: ctx, r: r, section: sampleSection}, rg: rg}
}

// SampleCursor reads the rows of one series after the other.
type SampleCursor struct {
	pages rankWalk
	rg    model.TimeRange
	dir   sampleDir
	// open is the page that dir holds; an address with no length means none.
	open Addr
}

// AppendRows appends the rows of a series within the cursor's range, ascending.
func (c *SampleCursor) AppendRows(rank uint32, dst *model.Rows) error {
	e, err := c.pages.find(rank)
	begin := len(dst.Times)
	for ; err == nil && e != nil && e.rank0 <= rank; e, err = c.pages.following() {
		if e.times.Overlaps(c.rg) {
			if err := c.load(e); err != nil {
				return err
			}
			before := len(dst.Times)
			if err := c.dir.appendRows(int(rank-c.dir.rank0), c.rg, dst); err != nil {
				return at(e, err)
			}
			if before > begin && len(dst.Times) > before && dst.Times[before] <= dst.Times[before-1] {
				return at(e, corrupt("page of samples goes on before the one that it follows ends"))
			}
		}
		if e.last() > rank {
			return nil
		}
	}
	return err
}

func (c *SampleCursor) load(e *pageEntry) error {
	if c.open == e.addr && e.addr.Len != 0 {
		return nil
	}
	c.open = Addr{}
	payload, err := c.pages.load(e)
	if err != nil {
		return err
	}
	if err := c.dir.open(payload); err != nil {
		return at(e, err)
	}
	if c.dir.rank0 != e.rank0 || uint32(len(c.dir.counts)) != e.ranks || uint64(c.dir.rows) != e.rows {
		return at(e, corrupt("page of samples is not the one that the index names"))
	}
	c.open = e.addr
	return nil
}

// SamplePages lists, in order, the pages that reading the ranks within rg will need, so that they can be fetched side by
// side beforehand.
func (r *Reader) SamplePages(ctx context.Context, ranks Ranks, rg model.TimeRange) ([]Addr, error) {
	w := rankWalk{ctx: ctx, r: r, section: sampleSection}
	var pages []Addr
	for i := 0; i < len(ranks); {
		rank := ranks[i]
		e, err := w.find(rank)
		for ; err == nil && e != nil && e.rank0 <= rank; e, err = w.following() {
			if e.times.Overlaps(rg) && (len(pages) == 0 || pages[len(pages)-1].Off < e.addr.Off) {
				pages = append(pages, e.addr)
			}
			if e.last() > rank {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		// Other ranks of the same page add nothing, except the last, which may go on in the next.
		for i++; e != nil && e.rank0 <= rank && i < len(ranks) && ranks[i] < e.last(); i++ {
		}
	}
	return pages, nil
}
