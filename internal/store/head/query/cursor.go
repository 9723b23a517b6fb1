package query

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/rows"
	"github.com/shaledb/shale/internal/store/part"
)

// cursor joins the series with the rows of one family, both in the order of keys.
type cursor struct {
	selection
	family model.Family
	// parts and runs have rows, both oldest first, but for parts of other times; all parts are older than any run. Ranks of a series are in
	// the order of parts.
	parts    []partRows
	runs     []bufferedRows
	prefetch seriesPrefetch
}

// open finds what there is of the request. Without rows there are no series.
func (c *cursor) open(ctx context.Context) error {
	req := c.req
	var keys []partKeys
	for _, p := range inTime(c.view.DataParts, req) {
		if c.family == model.Exemplars && p.Exemplars == 0 {
			continue
		}
		req.Cost.HeadParts.Add(1)
		r := p.ReaderFor(req, c.pages)
		keys = append(keys, newPartKeys(ctx, r, p.Part, req.Tenant))
		whole := c.family == model.Samples && p.Exemplars == 0 && req.Range.Min <= p.Range.Min && p.Range.Max <= req.Range.Max
		c.parts = append(c.parts, partRows{p.Part, r.RowsAt(ctx, c.family, req.Range), whole})
	}
	for _, r := range c.view.Runs {
		r.Sort()
		t := r.Tenant(req.Tenant)
		if t == nil || len(t.Families[c.family].Keys) == 0 || !t.Families[c.family].Range.Overlaps(req.Range) {
			continue
		}
		req.Cost.HeadBuffers.Add(1)
		c.runs = append(c.runs, bufferedRows{rows: &t.Families[c.family], blobs: r.Blobs, rg: req.Range})
	}
	if len(c.parts)+len(c.runs) == 0 {
		return nil
	}
	if err := c.openSeries(ctx); err != nil {
		return err
	}
	c.prefetch = seriesPrefetch{series: &c.series, parts: keys, quota: req.Quota}
	return nil
}

// ofTenant is a data part, and what it has of a tenant.
type ofTenant struct {
	*local.Part
	*part.Tenant
}

// inTime returns the parts that have rows of a tenant in a range, in the order of their times as far as these do not overlap: who
// appends the rows need not sort them then. Parts that do overlap stay in the order of arrival.
func inTime(parts []*local.Part, req *model.Request) []ofTenant {
	out := make([]ofTenant, 0, len(parts))
	for _, p := range parts {
		t := p.Reader.Meta().Tenant(req.Tenant)
		if t == nil || !t.Range.Overlaps(req.Range) {
			continue
		}
		out = append(out, ofTenant{p, t})
		for i := len(out) - 1; i > 0 && out[i].Range.Max < out[i-1].Range.Min; i-- {
			out[i-1], out[i] = out[i], out[i-1]
		}
	}
	return out
}

// Next moves to the next series that has rows in the range.
func (c *cursor) Next(ctx context.Context) bool {
	for c.err == nil {
		var more, has bool
		if more, c.err = c.prefetch.next(ctx); !more || c.err != nil {
			return false
		}
		if has, c.err = c.hasRows(); has && c.err == nil {
			return true
		}
	}
	return false
}

// hasRows reports whether the current series has any. All runs move to it.
func (c *cursor) hasRows() (has bool, err error) {
	k := c.prefetch.key()
	for i := range c.runs {
		if c.runs[i].seek(k) {
			has = true
		}
	}
	for i, rank := range c.prefetch.ranks() {
		if has || err != nil {
			break
		}
		switch p := &c.parts[i]; {
		case rank == noRank:
		case p.whole:
			has = true
		default:
			has, err = p.rows.Has(uint32(rank))
			err = p.part.WrapError(err)
		}
	}
	return has, err
}

func (c *cursor) Key() model.Key       { return c.prefetch.key() }
func (c *cursor) Labels() model.Labels { return c.prefetch.labels() }

// AppendRows appends the rows of all parts and runs, brought into order.
func (c *cursor) AppendRows(_ context.Context, dst *model.Rows) error {
	begin, ordered := dst.Len(), true
	for i, rank := range c.prefetch.ranks() {
		if rank == noRank {
			continue
		}
		at := dst.Len()
		if err := c.parts[i].rows.AppendRows(uint32(rank), dst); err != nil {
			return c.parts[i].part.WrapError(err)
		}
		// A part's are in order.
		ordered = ordered && (at == begin || at == dst.Len() || dst.Times[at-1] < dst.Times[at])
	}
	for i := range c.runs {
		at := dst.Len()
		c.runs[i].appendRows(dst)
		ordered = ordered && at == dst.Len()
	}
	if !ordered {
		dst.NormalizeFrom(begin, c.family)
	}
	return nil
}

// Close ends what looks for series ahead, before the parts go.
func (c *cursor) Close() error {
	c.prefetch.close()
	for _, p := range c.parts {
		p.rows.Close()
	}
	c.parts, c.runs = nil, nil
	return c.selection.Close()
}

// partRows are the rows of one family of a data part.
type partRows struct {
	part *local.Part
	rows *part.RowCursor
	// whole says that all that the part has of the tenant are samples in the range: each series has some, or may come empty.
	whole bool
}

// bufferedRows are the rows of one family of a run.
type bufferedRows struct {
	rows  *rows.FamilyRows
	blobs rows.Blobs
	rg    model.TimeRange
	// The rows of the key that was sought last.
	from, to int
}

// seek moves to a key, which is greater than those before, and reports whether it has rows in the range.
func (r *bufferedRows) seek(k model.Key) bool {
	r.from, r.to = r.rows.Seek(r.to, k)
	for _, t := range r.rows.Times[r.from:r.to] {
		if r.rg.Contains(t) {
			return true
		}
	}
	return false
}

// appendRows appends them, oldest arrival first.
func (r *bufferedRows) appendRows(dst *model.Rows) {
	for i := r.from; i < r.to; i++ {
		if r.rg.Contains(r.rows.Times[i]) {
			r.rows.AppendTo(dst, i, i+1, r.blobs)
		}
	}
}
