package archive

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// LabelNames emits the label names of the series in the blocks of the request's range.
func (a *Archive) LabelNames(ctx context.Context, req *model.Request, emit func(name []byte) error) error {
	return a.eachBlock(ctx, req, func(r *part.Reader) error {
		return r.LabelNames(ctx, req.Tenant, req.Matchers, emit)
	}, func(l model.Labels) error {
		for name, _, rest, ok := l.Next(); ok; name, _, rest, ok = rest.Next() {
			if err := emit(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// LabelValues emits the values of one label.
func (a *Archive) LabelValues(ctx context.Context, req *model.Request, name string, emit func(value []byte) error) error {
	return a.eachBlock(ctx, req, func(r *part.Reader) error {
		return r.LabelValues(ctx, req.Tenant, name, req.Matchers, emit)
	}, func(l model.Labels) error {
		if value := l.Get(name); len(value) > 0 {
			return emit(value)
		}
		return nil
	})
}

// eachBlock lists the labels of each block: by its postings, or series by series if whole series of it have been deleted,
// which the postings still name.
func (a *Archive) eachBlock(ctx context.Context, req *model.Request, list func(*part.Reader) error, series func(model.Labels) error) error {
	blocks := a.o.Catalog.Overlapping(req.Range, req.Signal, req.Tenant)
	for i := range blocks {
		b := &blocks[i]
		var err error
		if a.hidesSeries(b, req) {
			err = a.walk(ctx, b, req, series)
		} else {
			err = a.list(ctx, b, req, list)
		}
		if err != nil {
			return fmt.Errorf("block %s: %w", b.ID, err)
		}
	}
	return nil
}

// list charges what the walk holds, one block at a time.
func (a *Archive) list(ctx context.Context, b *catalog.Block, req *model.Request, list func(*part.Reader) error) error {
	held := int64(0)
	charge := func(n int64) error {
		err := req.Quota.TakeBytes(n)
		if err == nil {
			held += n
		}
		return err
	}
	defer func() { _ = req.Quota.TakeBytes(-held) }() // giving back does not fail
	if err := charge(cursorBytes); err != nil {
		return err
	}
	r, err := a.reader(ctx, b, req)
	if err != nil {
		return err
	}
	req.Cost.Blocks.Add(1)
	if err := charge(r.FooterBytes()); err != nil {
		return err
	}
	return list(r.Charged(charge))
}

// hidesSeries reports whether a deletion takes everything of some series that the request wants of a block.
func (a *Archive) hidesSeries(b *catalog.Block, req *model.Request) bool {
	wanted := model.TimeRange{Min: max(b.Range.Min, req.Range.Min), Max: min(b.Range.Max, req.Range.Max)}
	for _, d := range a.o.Catalog.Deletions(b, req.Tenant) {
		if within([]model.TimeRange{d.Range}, wanted) {
			return true
		}
	}
	return false
}

// walk visits the labels of the series that are left.
func (a *Archive) walk(ctx context.Context, b *catalog.Block, req *model.Request, series func(model.Labels) error) error {
	names := *req
	names.LabelsOnly = true
	c, err := a.open(ctx, b, &names)
	if c == nil {
		return err
	}
	defer func() { _ = c.Close() }() // giving back does not fail
	for c.Next(ctx) {
		if err := series(c.Labels()); err != nil {
			return err
		}
	}
	return c.Err()
}
