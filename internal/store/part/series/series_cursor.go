package series

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// NewSeriesCursor reads keys by rank, and labels if they are wanted. Ascending ranks are cheap.
func NewSeriesCursor(ctx context.Context, r *file.Reader, tenant string, labels bool) *SeriesCursor {
	return &SeriesCursor{
		keys:   NewKeyCursor(ctx, r, tenant),
		labels: LabelCursor{Pages: file.NewWalk(ctx, r, LabelSection)},
		has:    labels && r.Meta().Labels,
	}
}

// SeriesCursor is placed on one series of a tenant after the other.
type SeriesCursor struct {
	keys   *KeyCursor
	labels LabelCursor
	has    bool
}

// Enter makes the cursor one of another tenant, like KeyCursor.Enter.
func (c *SeriesCursor) Enter(tenant string) bool { return c.keys.Enter(tenant) }

// Seek moves to a rank of the tenant. A rank of another tenant is an error of class invalid.
func (c *SeriesCursor) Seek(rank uint32) error {
	if rank < c.keys.begin || rank >= c.keys.end {
		return column.Invalid("rank %d is not one of the tenant's, which are [%d, %d)", rank, c.keys.begin, c.keys.end)
	}
	if !c.keys.Seek(rank) {
		return c.keys.Err()
	}
	if !c.has {
		return nil
	}
	return c.labels.Seek(rank)
}

// Key returns the key of the series.
func (c *SeriesCursor) Key() model.Key { return c.keys.Key() }

// Rank returns the rank of the series.
func (c *SeriesCursor) Rank() uint32 { return c.keys.Rank() }

// Labels returns the labels of the series, nil if the part has none or they are not wanted. They are valid
// until Seek.
func (c *SeriesCursor) Labels() model.Labels {
	if !c.has {
		return nil
	}
	return c.labels.Labels()
}

// LabelCursor is placed on the labels of one rank after the other.
type LabelCursor struct {
	Pages file.Walk
	dir   LabelDir
}

// NewLabelStream returns a cursor for a walk over all label sets.
func NewLabelStream(r *file.Reader) *LabelCursor {
	return &LabelCursor{Pages: file.NewStreamWalk(r, LabelSection)}
}

// Seek moves to the label set of a rank.
func (c *LabelCursor) Seek(rank uint32) error {
	if rank < c.dir.rank0 || rank-c.dir.rank0 >= uint32(c.dir.count) {
		c.dir.count = 0
		e, err := c.Pages.Cover(rank)
		if err != nil {
			return err
		}
		payload, err := c.Pages.Load(e)
		if err != nil {
			return err
		}
		if err := c.dir.decode(payload); err != nil {
			return file.AtPage(e.Addr, err)
		}
		if c.dir.rank0 != e.Rank0 || uint32(c.dir.count) != e.Ranks {
			c.dir.count = 0
			return file.AtPage(e.Addr, column.Corrupt("page of labels is not the one that the index names"))
		}
	}
	return c.dir.seek(int(rank - c.dir.rank0))
}

// Labels returns the labels of the current rank. They are valid until seek.
func (c *LabelCursor) Labels() model.Labels { return model.Labels(c.dir.labels) }
