package archive

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// Catalog is what the archive needs of the catalogue.
type Catalog interface {
	// Overlapping returns the visible blocks of a signal that hold rows of a tenant in a range.
	Overlapping(r model.TimeRange, s model.Signal, tenant string) []catalog.Block
	// Deletions returns what has been deleted of a block's rows of a tenant and still stands in the block.
	Deletions(b *catalog.Block, tenant string) catalog.Deletions
}

// Bucket is what the archive needs of the bucket.
type Bucket interface {
	// GetRange returns n bytes of an object from off, or an error.
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
}

// Options build an Archive.
type Options struct {
	Catalog Catalog
	Bucket  Bucket
	Pages   part.Cache
	Seed    model.KeySeed
}

// Archive is a source of series. It is safe for concurrent use.
type Archive struct {
	o       Options
	readers *readers
	// firstPause is the constant of that name; tests do not wait. Their blocks are small, so they reach less far.
	firstPause time.Duration
	reach      reach
}

// New returns an Archive. It opens nothing yet.
func New(o Options) *Archive {
	return &Archive{o: o, readers: newReaders(), firstPause: firstPause, reach: usualReach()}
}

// openAtOnce is how many blocks one query opens at one time: a block takes a few requests, one after the other, before the
// pages of its series are known.
const openAtOnce = 16

// Select returns a cursor for each block that may hold rows of the request. Series of logs come without rows.
func (a *Archive) Select(ctx context.Context, req *model.Request) ([]model.Cursor, error) {
	opened, err := a.openAll(ctx, req)
	cursors := make([]model.Cursor, 0, len(opened))
	for _, c := range opened {
		cursors = append(cursors, c)
	}
	return cursors, err
}

// SelectText returns a cursor for each block that may hold lines of the request.
func (a *Archive) SelectText(ctx context.Context, req *model.Request) ([]model.TextCursor, error) {
	text := *req
	text.Family = model.Text
	req = &text
	opened, err := a.openAll(ctx, req)
	// Of blocks of one order, which two compactors may have made, the one that begins earlier has what came first.
	slices.SortStableFunc(opened, func(a, b *cursor) int { return cmp.Compare(a.block.OrderLo, b.block.OrderLo) })
	cursors := make([]model.TextCursor, 0, len(opened))
	for _, c := range opened {
		cursors = append(cursors, &textCursor{cursor: c, text: c.from.TextAt(ctx, req, c.verdicts, c.Order(), c.named)})
	}
	return cursors, err
}

// openAll opens the blocks that may hold rows of the request, or none if one of them fails.
func (a *Archive) openAll(ctx context.Context, req *model.Request) ([]*cursor, error) {
	blocks := a.o.Catalog.Overlapping(req.Range, req.Signal, req.Tenant)
	opened, l := make([]*cursor, len(blocks)), newLanes()
	var g errgroup.Group
	g.SetLimit(openAtOnce)
	for i := range blocks {
		g.Go(func() (err error) {
			if opened[i], err = a.open(ctx, &blocks[i], req, l); err != nil {
				return fmt.Errorf("block %s: %w", blocks[i].ID, err)
			}
			return nil
		})
	}
	err := g.Wait()
	opened = slices.DeleteFunc(opened, func(c *cursor) bool { return c == nil })
	if err == nil {
		return opened, nil
	}
	for _, c := range opened {
		_ = c.Close() // giving back does not fail
	}
	return nil, err
}
