package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// parallelReads bounds the records that are read at one time.
const parallelReads = 16

// Catalog is the commit records of a bucket, in memory. It is safe for concurrent use.
type Catalog struct {
	b   bucket.Bucket
	now func() int64

	// mu is held while records change, and not while the bucket is asked.
	mu      sync.Mutex
	records map[string]*record

	view atomic.Pointer[[]Block]
}

// Open reads the commit records of a bucket. Errors name the object: class corrupt for a record that cannot be read,
// invalid for one of a later version, or those of the bucket.
func Open(ctx context.Context, b bucket.Bucket) (*Catalog, error) {
	c := &Catalog{b: b, now: func() int64 { return time.Now().UnixNano() }, records: map[string]*record{}}
	c.publish()
	if err := c.Refresh(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Refresh reads the records that others have written since, and forgets those that others have deleted. A record never
// changes in a way that matters, so that one which is known is not read again.
func (c *Catalog) Refresh(ctx context.Context) error {
	c.mu.Lock()
	known := make(map[string]bool, len(c.records))
	for id := range c.records {
		known[id] = true
	}
	c.mu.Unlock()

	listed := map[string]bool{}
	var fresh []string
	err := c.b.List(ctx, recordPrefix, func(name string, _ int64) error {
		id, ok := strings.CutSuffix(strings.TrimPrefix(name, recordPrefix), recordSuffix)
		if !ok || strings.Contains(id, "/") {
			return fmt.Errorf("%s: %w: the name is not that of a commit record", name, model.ErrCorrupt)
		}
		if listed[id] = true; !known[id] {
			fresh = append(fresh, id)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("catalogue: %w", err)
	}
	read, err := c.read(ctx, fresh)
	if err != nil {
		return fmt.Errorf("catalogue: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range read {
		if r != nil {
			c.records[r.ID] = r
		}
	}
	for id := range known {
		if !listed[id] {
			delete(c.records, id)
		}
	}
	c.publish()
	return nil
}

// read returns the records of the ids, nil for those that have been deleted since they were listed.
func (c *Catalog) read(ctx context.Context, ids []string) ([]*record, error) {
	records := make([]*record, len(ids))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for i, id := range ids {
		g.Go(func() error {
			name := recordName(id)
			data, err := c.b.Get(ctx, name)
			if errors.Is(err, bucket.ErrNotFound) {
				return nil
			}
			if err == nil {
				records[i], err = parseRecord(name, data)
			}
			return err
		})
	}
	return records, g.Wait()
}

// publish makes what the records say visible. It is called with mu held, or before anybody else has the catalogue.
func (c *Catalog) publish() {
	replaced := c.replaced()
	blocks := make([]Block, 0, len(c.records))
	for id, r := range c.records {
		if r.Block == nil {
			continue
		}
		if _, gone := replaced[id]; gone {
			continue
		}
		if b, err := r.block(); err == nil { // it has been checked when it was read
			blocks = append(blocks, b)
		}
	}
	slices.SortFunc(blocks, func(a, b Block) int {
		switch {
		case a.Range.Min != b.Range.Min:
			if a.Range.Min < b.Range.Min {
				return -1
			}
			return 1
		case a.SeqLo != b.SeqLo:
			if a.SeqLo < b.SeqLo {
				return -1
			}
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
	c.view.Store(&blocks)
}

// replaced returns when each block that is named by a record's Replaces was first named. It is called with mu held.
func (c *Catalog) replaced() map[string]int64 {
	at := map[string]int64{}
	for _, r := range c.records {
		for _, id := range r.Replaces {
			if t, ok := at[id]; !ok || r.Committed < t {
				at[id] = r.Committed
			}
		}
	}
	return at
}

// Has reports whether a block is visible.
func (c *Catalog) Has(id string) bool {
	return slices.ContainsFunc(c.Live(), func(b Block) bool { return b.ID == id })
}

// Live returns the visible blocks in the order of their first times. They must not be changed.
func (c *Catalog) Live() []Block { return *c.view.Load() }

// Overlapping returns the visible blocks of a signal that may hold rows of a tenant in a range, in the order of their
// first times.
func (c *Catalog) Overlapping(r model.TimeRange, s model.Signal, tenant string) []Block {
	var found []Block
	for _, b := range c.Live() {
		if b.Range.Min > r.Max {
			break
		}
		if b.Signal == s && b.Range.Overlaps(r) && b.HasTenant(tenant) {
			found = append(found, b)
		}
	}
	return found
}

// Commit makes a block, whose object is complete, visible, and those that it replaces invisible, at once. After an error
// of class transient it may have happened or not, and is to be repeated.
func (c *Catalog) Commit(ctx context.Context, b Block) error {
	if err := c.commit(ctx, recordOf(b, c.now())); err != nil {
		return fmt.Errorf("catalogue: commit: %w", err)
	}
	return nil
}

func (c *Catalog) commit(ctx context.Context, r *record) error {
	name := recordName(r.ID)
	data, err := r.encode()
	if err != nil {
		return fmt.Errorf("%s: %w: %v", name, model.ErrInvalid, err)
	}
	// What could not be read again must not be written: it would lock everybody out of the catalogue.
	stored, err := parseRecord(name, data)
	if err != nil {
		return fmt.Errorf("%w: %v", model.ErrInvalid, err)
	}
	if err := c.b.Put(ctx, name, strings.NewReader(string(data)), int64(len(data))); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records[r.ID] = stored
	c.publish()
	return nil
}
