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
	// Both are oldest first, except that inTime orders parts by time. All parts are older than any run.
	parts    []partRows
	runs     []bufferedRows
	prefetch seriesPrefetch
	scratch  model.Rows
}

// open finds the parts and runs with rows of the request. Without any there are no series.
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
		c.oldest = min(c.oldest, p.Range.Min)
		whole := c.family == model.Samples && p.Exemplars == 0 && req.Range.Min <= p.Range.Min && p.Range.Max <= req.Range.Max
		c.parts = append(c.parts, partRows{p.Part, r.RowsAt(ctx, c.family, req.Range), int64(p.Series), whole, origin{p.Info.SeqHi, p.Range.Min}})
	}
	for _, r := range c.view.Runs {
		t := r.Tenant(req.Tenant)
		if t == nil || len(t.Families[c.family].Keys) == 0 || !t.Families[c.family].Range.Overlaps(req.Range) {
			continue
		}
		req.Cost.HeadBuffers.Add(1)
		c.oldest = min(c.oldest, t.Families[c.family].Range.Min)
		c.runs = append(c.runs, bufferedRows{rows: &t.Families[c.family], blobs: r.Blobs, rg: req.Range, origin: origin{r.SeqHi, t.Families[c.family].Range.Min}})
	}
	if len(c.parts)+len(c.runs) == 0 {
		return nil
	}
	if err := c.openSeries(ctx); err != nil {
		return err
	}
	if err := c.checkSeries(ctx); err != nil {
		return err
	}
	c.prefetch = seriesPrefetch{series: &c.series, parts: keys, quota: req.Quota}
	return nil
}

// tenantPart is a data part and its entry for a tenant.
type tenantPart struct {
	*local.Part
	*part.Tenant
}

// inTime returns the parts that have rows of the request, ordered by time, so that their rows need no
// sorting. Parts that overlap in time stay in the order of arrival.
func inTime(parts []*local.Part, req *model.Request) []tenantPart {
	out := make([]tenantPart, 0, len(parts))
	for _, p := range parts {
		t := p.Reader.Meta().Tenant(req.Tenant)
		if t == nil || !t.Range.Overlaps(req.Range) {
			continue
		}
		out = append(out, tenantPart{p, t})
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
		if has, c.err = c.seekRows(); has && c.err == nil && c.mayHide() && c.hidden.setSeries(c.fences, c.req.Horizon, c.oldest, c.Labels()) {
			has, c.err = c.remains(ctx)
		}
		if has && c.err == nil {
			return true
		}
	}
	return false
}

// remains reports whether deletions and retention leave any row of the current series in the range.
func (c *cursor) remains(ctx context.Context) (bool, error) {
	c.scratch.Reset()
	err := c.AppendRows(ctx, &c.scratch)
	return c.scratch.Len() > 0, err
}

// seekRows moves all runs to the current series and reports whether any part or run has rows of it.
func (c *cursor) seekRows() (has bool, err error) {
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

// AppendRows appends the rows of all parts and runs, in order of time.
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
		c.hidden.cuts(c.parts[i].origin).Rows(dst, at)
		// The rows of one part are in order.
		ordered = ordered && (at == begin || at == dst.Len() || dst.Times[at-1] < dst.Times[at])
	}
	for i := range c.runs {
		at := dst.Len()
		c.runs[i].appendRows(dst)
		c.hidden.cuts(c.runs[i].origin).Rows(dst, at)
		ordered = ordered && at == dst.Len()
	}
	if !ordered {
		dst.NormalizeFrom(begin, c.family)
	}
	return nil
}

// Close ends the prefetch, then releases the parts.
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
	part   *local.Part
	rows   *part.RowCursor
	series int64 // of the tenant
	// whole says that the tenant has only samples in the part, all within the range: every series has rows.
	whole bool
	origin
}

// bufferedRows are the rows of one family of a run.
type bufferedRows struct {
	rows  *rows.FamilyRows
	blobs rows.Blobs
	rg    model.TimeRange
	origin
	// The rows of the key of the last seek.
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

// appendRows appends the rows of the key in the range, in the order of arrival.
func (r *bufferedRows) appendRows(dst *model.Rows) {
	for i := r.from; i < r.to; i++ {
		if r.rg.Contains(r.rows.Times[i]) {
			r.rows.AppendTo(dst, i, i+1, r.blobs)
		}
	}
}
