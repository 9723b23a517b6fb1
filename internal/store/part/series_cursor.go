package part

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// newSeriesCursor reads keys by rank, and labels if they are wanted. Ascending ranks are cheap.
func newSeriesCursor(ctx context.Context, r *fileReader, tenant string, labels bool) *SeriesCursor {
	return &SeriesCursor{
		keys:   newKeyCursor(ctx, r, tenant),
		labels: labelCursor{pages: newWalk(ctx, r, labelSection)},
		has:    labels && r.Meta().Labels,
	}
}

// SeriesCursor is placed on one series of a tenant after the other.
type SeriesCursor struct {
	keys   *KeyCursor
	labels labelCursor
	has    bool
}

// Enter makes the cursor one of another tenant, like KeyCursor.Enter.
func (c *SeriesCursor) Enter(tenant string) bool { return c.keys.Enter(tenant) }

// Seek moves to a rank of the tenant. A rank of another tenant is an error of class invalid.
func (c *SeriesCursor) Seek(rank uint32) error {
	if rank < c.keys.begin || rank >= c.keys.end {
		return invalid("rank %d is not one of the tenant's, which are [%d, %d)", rank, c.keys.begin, c.keys.end)
	}
	if !c.keys.Seek(rank) {
		return c.keys.Err()
	}
	if !c.has {
		return nil
	}
	return c.labels.seek(rank)
}

// Key returns the key of the series.
func (c *SeriesCursor) Key() model.Key { return c.keys.Key() }

// Rank returns the rank of the series.
func (c *SeriesCursor) Rank() uint32 { return c.keys.Rank() }

// Labels returns the labels of the series, nil if the part has none or they are not wanted. They are valid until Seek.
func (c *SeriesCursor) Labels() model.Labels {
	if !c.has {
		return nil
	}
	return c.labels.labels()
}

// labelCursor is placed on the labels of one rank after the other.
type labelCursor struct {
	pages rankWalk
	dir   labelDir
}

// newLabelStream returns a cursor for a walk over all label sets.
func newLabelStream(r *fileReader) *labelCursor {
	return &labelCursor{pages: newStreamWalk(r, labelSection)}
}

func (c *labelCursor) seek(rank uint32) error {
	if rank < c.dir.rank0 || rank-c.dir.rank0 >= uint32(c.dir.count) {
		c.dir.count = 0
		e, err := c.pages.cover(rank)
		if err != nil {
			return err
		}
		payload, err := c.pages.load(e)
		if err != nil {
			return err
		}
		if err := c.dir.open(payload); err != nil {
			return atPage(e.addr, err)
		}
		if c.dir.rank0 != e.rank0 || uint32(c.dir.count) != e.ranks {
			c.dir.count = 0
			return atPage(e.addr, corrupt("page of labels is not the one that the index names"))
		}
	}
	return c.dir.seek(int(rank - c.dir.rank0))
}

// labels returns the labels of the current rank. They are valid until seek.
func (c *labelCursor) labels() model.Labels { return model.Labels(c.dir.labels) }
