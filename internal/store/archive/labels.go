package archive

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// LabelNames emits the label names of the series in the blocks of the request's range.
func (a *Archive) LabelNames(ctx context.Context, req *model.Request, emit func(name []byte) error) error {
	return a.eachBlock(ctx, req, nil, func(r *part.Reader) error {
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
		if len(req.Matchers) > 0 {
			return nil // the pages to read depend on the matches
		}
		return r.FetchValues(ctx, req.Tenant, name)
	}, func(r *part.Reader) error {
		return r.LabelValues(ctx, req.Tenant, name, req.Matchers, emit)
	}, func(l model.Labels) error {
		if value := l.Get(name); len(value) > 0 {
			return emit(value)
		}
		return nil
	})
}

// listAhead is the number of blocks that are opened ahead of the one that is being listed.
const listAhead = 8

// eachBlock lists the labels of each block: from its postings, or series by series if whole series may be
// hidden, which the postings still name. Blocks are listed one after the other, because values in order
// cost least, but are opened in parallel: fetch, if set, prefetches the pages that list will read.
func (a *Archive) eachBlock(ctx context.Context, req *model.Request, fetch, list func(*part.Reader) error, series func(model.Labels) error) (err error) {
	if err := a.o.Catalog.Missing(req.Range, req.Signal, req.Tenant); err != nil {
		return err
	}
	blocks := a.blocks(req)
	ctx, cancel := context.WithCancel(ctx)
	listings, l := make([]*listing, 0, listAhead), newLanes()
	defer func() {
		cancel()
		for _, ls := range listings {
			<-ls.opened
			ls.close()
		}
	}()
	for i, next := 0, 0; i < len(blocks); i++ {
		for ; next < len(blocks) && len(listings) < listAhead; next++ {
			listings = append(listings, a.startListing(ctx, &blocks[next], req, fetch, l))
		}
		ls := listings[0]
		<-ls.opened
		if err = ls.err; err == nil && ls.hides {
			err = a.walk(ctx, ls.of, req, series, l)
		} else if err == nil {
			err = list(ls.block.Charged(ls.charge))
		}
		if err != nil {
			return a.damage.named(ls.of, err)
		}
		ls.close()
		listings = listings[1:]
	}
	return nil
}

// listing is a block whose labels are, or will be, listed.
type listing struct {
	of     *catalog.Block
	hides  bool // whole series may be hidden
	quota  *model.Quota
	held   int64
	block  *block
	opened chan struct{}
	err    error
}

// startListing opens a block and charges the memory for it.
func (a *Archive) startListing(ctx context.Context, b *catalog.Block, req *model.Request, fetch func(*part.Reader) error, l lanes) *listing {
	ls := &listing{of: b, quota: req.Quota, opened: make(chan struct{}), hides: a.hidesSeries(b, req)}
	if ls.hides {
		close(ls.opened)
		return ls
	}
	go func() {
		defer close(ls.opened)
		if err := model.Caught(func() error { ls.open(ctx, a, req, fetch, l); return nil }); err != nil {
			ls.err = err
		}
	}()
	return ls
}

// open opens the block, and sets block or err.
func (ls *listing) open(ctx context.Context, a *Archive, req *model.Request, fetch func(*part.Reader) error, l lanes) {
	if ls.err = ls.charge(cursorCharge(ls.of)); ls.err != nil {
		return
	}
	if ls.block, ls.err = a.openBlock(ctx, ls.of, req, l); ls.err != nil {
		return
	}
	req.Cost.Blocks.Add(1)
	if ls.err = ls.charge(ls.block.FooterBytes()); ls.err == nil && fetch != nil {
		ls.err = fetch(ls.block.Reader)
	}
}

func (ls *listing) charge(n int64) error {
	err := ls.quota.TakeBytes(n)
	if err == nil {
		ls.held += n
	}
	return err
}

// close gives back the memory that the listing charged.
func (ls *listing) close() {
	if ls.block != nil {
		ls.block.close()
	}
	_ = ls.charge(-ls.held) // giving back does not fail
}

// hidesSeries reports whether all rows of a series that the request wants of a block may be hidden.
func (a *Archive) hidesSeries(b *catalog.Block, req *model.Request) bool {
	if horizonOf(b, req) != nil {
		return true
	}
	wanted := model.TimeRange{Min: max(b.Range.Min, req.Range.Min), Max: min(b.Range.Max, req.Range.Max)}
	for _, d := range a.o.Catalog.Deletions(b, req.Tenant) {
		if d.Range.Overlaps(wanted) {
			return true
		}
	}
	return false
}

// walk visits the labels of the remaining series.
func (a *Archive) walk(ctx context.Context, b *catalog.Block, req *model.Request, series func(model.Labels) error, l lanes) error {
	names := *req
	names.LabelsOnly = true
	c, err := a.open(ctx, b, &names, l)
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
