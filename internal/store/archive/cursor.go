package archive

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// cursor walks the series of one block that satisfy a request.
type cursor struct {
	block  catalog.Block
	quota  *model.Quota
	held   int64 // bytes of quota to give back
	ranks  part.Ranks
	at     int
	series *part.SeriesCursor
	rows   *part.SampleCursor
	err    error
}

// cursorBytes is about what an open cursor holds: a decoded page of keys, labels and samples each. Measured: 320 to 850
// KiB.
const cursorBytes = 1 << 20

func (a *Archive) open(ctx context.Context, b catalog.Block, req *model.Request) (*cursor, error) {
	r, err := a.reader(ctx, b, req)
	if err != nil {
		return nil, err
	}
	req.Cost.Blocks.Add(1)
	ranks, err := r.Select(ctx, req.Tenant, req.Matchers)
	if err != nil {
		return nil, err
	}
	held := cursorBytes + 4*int64(len(ranks))
	if err := req.Quota.TakeBytes(held); err != nil {
		return nil, err
	}
	return &cursor{
		block: b, quota: req.Quota, held: held, ranks: ranks, at: -1,
		series: r.SeriesAt(ctx, req.Tenant), rows: r.SamplesAt(ctx, req.Range),
	}, nil
}

func (c *cursor) Next(ctx context.Context) bool {
	if c.err == nil {
		c.err = ctx.Err()
	}
	if c.at++; c.err != nil || c.at >= len(c.ranks) {
		return false
	}
	if err := c.series.Seek(c.ranks[c.at]); err != nil {
		c.err = fmt.Errorf("block %s: %w", c.block.ID, err)
	}
	return c.err == nil
}

func (c *cursor) Key() model.Key       { return c.series.Key() }
func (c *cursor) Labels() model.Labels { return c.series.Labels() }

func (c *cursor) AppendRows(_ context.Context, dst *model.Rows) error {
	if err := c.rows.AppendRows(c.ranks[c.at], dst); err != nil {
		return fmt.Errorf("block %s: %w", c.block.ID, err)
	}
	return nil
}

// Order is the end of the block's range of sequence numbers: of two blocks that hold rows of one time, the one that
// ends later took its rows later, since late rows are shipped after their window.
func (c *cursor) Order() uint64 { return c.block.SeqHi }

func (c *cursor) Err() error { return c.err }

// Close gives back what the cursor charged.
func (c *cursor) Close() error {
	held := c.held
	c.held, c.ranks = 0, nil
	return c.quota.TakeBytes(-held)
}
