package archive

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/part"
)

// cursor walks the series of one block that satisfy a request.
type cursor struct {
	block  *catalog.Block
	damage *damage
	from   *block
	quota  *model.Quota
	held   int64 // bytes of quota to give back
	ranks  part.Ranks
	at     int
	series *part.SeriesCursor
	rows   *part.RowCursor
	// verdicts are the filter verdicts on text units; nil: none.
	verdicts *part.TextVerdicts

	deletions catalog.Deletions
	horizon   *model.Horizon // nil: no row of the block has expired
	// wanted is the part of the request's range that the block covers.
	wanted model.TimeRange
	// cuts are what deletions and retention take of the current series.
	cuts deletion.Cuts
	// remains reports whether any row of the current series is left, where the reader does not see rows itself;
	// nil: it does, or nothing can be hidden.
	remains func(ctx context.Context) (bool, error)
	err     error
}

// cursorBytes is the approximate memory of an open cursor over a large block: one decoded page each of keys,
// labels and rows. All pages of a small block together are smaller. Blocks that are shipped every few seconds
// are small, and a query opens hundreds of them before they are merged.
const (
	cursorBytes = 1 << 20
	// openBytes is what an open block takes besides its pages.
	openBytes = 24 << 10
	// A page takes at most about so many times its stored size once it is decoded, besides its rows.
	decodedBytes = 16
	// rowBytes is what a row takes in a decoded page: 13 bytes for samples that are constant at regular times,
	// of which the page stores next to nothing, 20 with start times, and up to 24 for others.
	rowBytes = 24
)

// cursorCharge returns the approximate memory of an open cursor over a block, without rows.
func cursorCharge(b *catalog.Block) int64 {
	return min(cursorBytes, openBytes+decodedBytes*min(b.Bytes, cursorBytes))
}

// rowsCharge returns what the rows of a block add to [cursorCharge]. Their number is in the footer.
func rowsCharge(b *catalog.Block, rows uint64) int64 {
	return min(cursorBytes-cursorCharge(b), rowBytes*int64(min(rows, cursorBytes)))
}

// open returns a cursor over a block, or nil if the block has nothing that the request wants. It starts to
// prefetch the pages of the cursor.
func (a *Archive) open(ctx context.Context, b *catalog.Block, req *model.Request, l lanes) (_ *cursor, err error) {
	c := &cursor{block: b, damage: a.damage, quota: req.Quota, at: -1}
	defer func() {
		if err != nil {
			_ = c.Close() // giving back does not fail
		}
	}()
	if err := c.hold(cursorCharge(b)); err != nil {
		return nil, err
	}
	if c.from, err = a.openBlock(ctx, b, req, l); err != nil {
		return nil, err
	}
	r := c.from
	req.Cost.Blocks.Add(1)
	if err := c.hold(r.FooterBytes()); err != nil {
		return nil, err
	}
	if !hasRows(r.Reader, req) {
		return nil, c.Close()
	}
	c.deletions, c.horizon = a.o.Catalog.Deletions(b, req.Tenant), horizonOf(b, req)
	hides := len(c.deletions) > 0 || c.horizon != nil
	if t := r.Meta().Tenant(req.Tenant); hides || !req.LabelsOnly { // else no rows are decoded
		if err := c.hold(rowsCharge(b, t.Samples+t.Exemplars)); err != nil {
			return nil, err
		}
	}
	// Both are matched by labels.
	labels := !req.Unlabelled || hides
	if err := c.find(ctx, req, labels); err != nil {
		return nil, err
	}
	if c.series = r.SeriesAt(ctx, req.Tenant, labels); req.Family != model.Text {
		c.rows = r.RowsAt(ctx, req.Family, req.Range)
	}
	c.wanted = model.TimeRange{Min: max(b.Range.Min, req.Range.Min), Max: min(b.Range.Max, req.Range.Max)}
	if req.LabelsOnly && hides {
		c.remains = c.remainder(ctx, req)
	}
	return c, nil
}

// find selects the series and starts to prefetch them, with their labels if they are wanted.
func (c *cursor) find(ctx context.Context, req *model.Request, labels bool) (err error) {
	r := c.from
	if c.ranks, err = r.Charged(c.hold).Select(ctx, req.Tenant, req.Matchers); err != nil {
		return err
	}
	if err := r.FetchMasks(ctx, c.ranks, req.Range); err != nil {
		return err
	}
	if c.ranks, err = r.Active(ctx, c.ranks, req.Range); err != nil {
		return err
	}
	// Next returns each of them, if nothing hides it. A list of labels may end early.
	if req.Signal == model.Metrics && !req.LabelsOnly && len(c.deletions) == 0 && c.horizon == nil {
		if err := req.Quota.CheckSeries(int64(len(c.ranks))); err != nil {
			return err
		}
	}
	family := max(req.Family, model.Samples)
	text := family == model.Text && !req.LabelsOnly
	if req.LabelsOnly || text {
		family = 0
	}
	err = r.PrefetchSeries(ctx, c.ranks, labels, family, req.Range)
	if err == nil && text {
		// Filters and lines are prefetched once their order is known: see the text pages of package part.
		c.verdicts, err = r.PrefetchChunks(ctx, c.ranks, req)
	}
	if err != nil {
		return err
	}
	if r.pages.tailOff > 0 {
		r.pages.tail = nil
	}
	return c.hold(int64(len(r.pages.tail)))
}

// hasRows reports whether the block has any rows of the tenant and family that the request wants.
func hasRows(r *part.Reader, req *model.Request) bool {
	t := r.Meta().Tenant(req.Tenant)
	switch {
	case t == nil || !t.Range.Overlaps(req.Range):
		return false
	case req.LabelsOnly:
		return true
	case req.Family == model.Exemplars:
		return t.Exemplars > 0
	case req.Family == model.Text:
		return t.Text > 0
	}
	return t.Samples > 0
}

// hold charges memory, which Close gives back.
func (c *cursor) hold(n int64) error {
	if err := c.quota.TakeBytes(n); err != nil {
		return err
	}
	c.held += n
	return nil
}

// remainder returns the function that looks for rows of the current series that are not hidden.
func (c *cursor) remainder(ctx context.Context, req *model.Request) func(context.Context) (bool, error) {
	if req.Signal == model.Logs {
		text := *req
		text.Family, text.LabelsOnly, text.TextFilter = model.Text, false, nil
		chunks := c.from.TextAt(ctx, &text, nil, c.Order(), c.named)
		return func(ctx context.Context) (bool, error) {
			found, err := chunks.Chunks(ctx, c.ranks[c.at], nil)
			if err == nil {
				found, err = c.cuts.Chunks(ctx, found, 0, func(err error) error { return err })
			}
			return slices.ContainsFunc(found, func(x model.TextChunk) bool { return x.Overlaps(req.Range) }), err
		}
	}
	var families []*part.RowCursor
	for _, f := range model.PointFamilies() {
		if t := c.from.Meta().Tenant(req.Tenant); f == model.Samples && t.Samples > 0 || f == model.Exemplars && t.Exemplars > 0 {
			families = append(families, c.from.RowsAt(ctx, f, req.Range))
		}
	}
	var rows model.Rows
	return func(context.Context) (bool, error) {
		for _, f := range families {
			rows.Reset()
			if err := f.AppendRows(c.ranks[c.at], &rows); err != nil {
				return false, err
			}
			if c.cuts.Rows(&rows, 0); rows.Len() > 0 {
				return true, nil
			}
		}
		return false, nil
	}
}

// Next moves to the next series that has rows left after deletions and retention.
func (c *cursor) Next(ctx context.Context) bool {
	for {
		if c.err == nil {
			c.err = ctx.Err()
		}
		if c.at++; c.err != nil || c.at >= len(c.ranks) {
			return false
		}
		if err := c.series.Seek(c.ranks[c.at]); err != nil {
			c.err = c.named(err)
			return false
		}
		if len(c.deletions) == 0 && c.horizon == nil {
			return true
		}
		if c.cuts = c.deletions.Cuts(c.series.Labels()).Widened(c.block.Resolution); c.horizon != nil {
			c.cuts = c.cuts.Before(c.horizon.Before(c.series.Labels()))
		}
		if c.cuts.Cover(c.wanted) {
			continue
		}
		if c.remains == nil || !c.cuts.Touch(c.wanted) {
			return true
		}
		left, err := c.remains(ctx)
		if err != nil {
			c.err = c.named(err)
			return false
		}
		if left {
			return true
		}
	}
}

func (c *cursor) Key() model.Key       { return c.series.Key() }
func (c *cursor) Labels() model.Labels { return c.series.Labels() }

// AppendRows appends the rows of the current series. There are none for text, and for a request that wants
// only labels.
func (c *cursor) AppendRows(_ context.Context, dst *model.Rows) error {
	if c.rows == nil {
		return nil
	}
	from := dst.Len()
	if err := c.rows.AppendRows(c.ranks[c.at], dst); err != nil {
		return c.named(err)
	}
	c.cuts.Rows(dst, from)
	return nil
}

// named adds the name of the block to an error.
func (c *cursor) named(err error) error { return c.damage.named(c.block, err) }

// Order returns the order of the block in the catalogue.
func (c *cursor) Order() uint64 { return c.block.Order() }

func (c *cursor) Err() error { return c.err }

// Close gives back the memory that the cursor charged.
func (c *cursor) Close() error {
	held := c.held
	if c.from != nil {
		c.from.close()
	}
	if c.rows != nil {
		c.rows.Close()
	}
	c.held, c.from, c.ranks, c.series, c.rows = 0, nil, nil, nil, nil
	return c.quota.TakeBytes(-held)
}
