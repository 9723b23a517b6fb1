package archive

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// Catalog is the part of the catalogue that the archive needs.
type Catalog interface {
	// Overlapping returns the visible blocks of a signal that hold rows of a tenant in a range.
	Overlapping(r model.TimeRange, s model.Signal, tenant string) []catalog.Block
	// WithRollups is Overlapping with the rollups that count, and the deletions of the tenant, at one moment.
	WithRollups(r model.TimeRange, s model.Signal, tenant string) (blocks, rollups []catalog.Block, deletions catalog.Deletions)
	// Missing returns an error if rows of a tenant in a range are missing from the catalogue.
	Missing(r model.TimeRange, s model.Signal, tenant string) error
	// Deletions returns the deletions of a tenant whose rows are still in the block.
	Deletions(b *catalog.Block, tenant string) catalog.Deletions
}

// Bucket is the part of the bucket that the archive needs.
type Bucket interface {
	// GetRange returns n bytes of an object from off, or an error.
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
}

// Options build an Archive.
type Options struct {
	Catalog Catalog
	Bucket  Bucket
	Pages   cache.Tier
	// Secondary is the tier after Pages; nil: none.
	Secondary cache.Secondary
	// Accounts are where pages are counted; the zero value counts nothing.
	Accounts Accounts
	Seed     model.KeySeed
	// Gap is the most unneeded bytes that a request reads between two pages.
	Gap int64

	Registerer prometheus.Registerer
	// Logger gets a line for each damaged block; nil: no log.
	Logger *slog.Logger
}

// Accounts are those of the tiers that pages come from.
type Accounts struct {
	Ledger                             *ledger.Ledger
	Pages, Lists, Disk, Shared, Bucket *ledger.Tier
}

// Archive is a source of series. It is safe for concurrent use.
type Archive struct {
	o       Options
	readers *readers
	damage  *damage
	reach   reach // is smaller in tests, which have small blocks
	stored  *stored
}

// New returns an Archive. It opens nothing yet.
func New(o Options) *Archive {
	return &Archive{o: o, readers: newReaders(), damage: newDamage(o), stored: new(stored), reach: usualReach(o.Gap)}
}

// openAtOnce is the number of blocks that one query opens in parallel: a block takes a few sequential
// requests before the pages of its series are known.
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
	// Two compactors may have made blocks of the same order; the one that begins earlier has the earlier
	// rows.
	slices.SortStableFunc(opened, func(a, b *cursor) int { return cmp.Compare(a.block.OrderLo, b.block.OrderLo) })
	cursors := make([]model.TextCursor, 0, len(opened))
	for _, c := range opened {
		cursors = append(cursors, &textCursor{cursor: c, text: c.from.TextAt(ctx, req, c.verdicts, c.Order(), c.named)})
	}
	return cursors, err
}

// openAll opens the blocks that may hold rows of the request, or none if one of them fails.
func (a *Archive) openAll(ctx context.Context, req *model.Request) ([]*cursor, error) {
	if err := a.o.Catalog.Missing(req.Range, req.Signal, req.Tenant); err != nil {
		return nil, err
	}
	blocks := a.blocks(req)
	opened, l := make([]*cursor, len(blocks)), newLanes()
	var g errgroup.Group
	g.SetLimit(openAtOnce)
	for i := range blocks {
		g.Go(model.Catching(func() (err error) {
			if opened[i], err = a.open(ctx, &blocks[i], requestOf(req, &blocks[i]), l); err != nil {
				return a.damage.named(&blocks[i], err)
			}
			return nil
		}))
	}
	processor := model.ProcessorOf(ctx)
	processor.Leave()
	err := g.Wait()
	processor.Enter(ctx)
	opened = slices.DeleteFunc(opened, func(c *cursor) bool { return c == nil })
	if err == nil {
		return opened, nil
	}
	for _, c := range opened {
		_ = c.Close() // giving back does not fail
	}
	return nil, err
}
