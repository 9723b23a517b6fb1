package bucketcopy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/store/catalog"
)

// parallelRecords bounds the small objects that are written or deleted at one time.
const parallelRecords = 32

// layers sorts records: each is in a later layer than all records that replace its blocks.
func layers(records []catalog.Stored) [][]*catalog.Stored {
	hiders := map[string][]int{}
	for i := range records {
		for _, id := range records[i].Replaces {
			hiders[id] = append(hiders[id], i)
		}
	}
	depths := make([]int, len(records)) // 0: not known yet
	var depth func(i int) int
	depth = func(i int) int {
		if depths[i] > 0 {
			return depths[i]
		}
		depths[i] = 1
		below := 0
		for _, b := range records[i].Blocks {
			for _, hider := range hiders[b.ID] {
				below = max(below, depth(hider))
			}
		}
		depths[i] = below + 1
		return depths[i]
	}
	var sorted [][]*catalog.Stored
	for i := range records {
		for len(sorted) < depth(i) {
			sorted = append(sorted, nil)
		}
		sorted[depth(i)-1] = append(sorted[depth(i)-1], &records[i])
	}
	return sorted
}

// publish makes the target show the records of the source. doc.go says why in this order.
func (c *Copy) publish(ctx context.Context, r *Report, records []catalog.Stored) error {
	t := c.target
	var deletions []*catalog.Stored
	for i := range records {
		if records[i].Deletes {
			deletions = append(deletions, &records[i])
		}
	}
	for _, layer := range append([][]*catalog.Stored{deletions}, layers(records)...) {
		if err := t.write(ctx, r, layer); err != nil {
			return fmt.Errorf("target: %w", err)
		}
	}
	if err := c.copyLists(ctx); err != nil {
		return err
	}
	if err := t.removeExtra(ctx, r, records); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if err := t.removeBlocks(ctx, r, visible(records)); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if err := c.copyTopics(ctx); err != nil {
		return err
	}
	if err := c.putSeed(ctx); err != nil {
		return err
	}
	return healthy(ctx, "target", c.To)
}

// write writes those of the records that the target lacks, each with its copy.
func (t *target) write(ctx context.Context, r *Report, records []*catalog.Stored) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelRecords)
	for _, s := range records {
		have := t.records[s.ID]
		same := have != nil && bytes.Equal(have.Data, s.Data)
		if same && t.copies[s.Name()] {
			continue
		}
		if !same {
			r.Records++
		}
		t.records[s.ID], t.copies[s.Name()] = s, true
		g.Go(func() error {
			if !same {
				if err := put(ctx, t.b, s.Name(), s.Data); err != nil {
					return err
				}
			}
			return put(ctx, t.b, catalog.CopyName(s.Name()), s.Data)
		})
	}
	return g.Wait()
}

// copyLists copies the lists of collected records, so that servers that knew the target before do not take
// the collected ones for lost.
func (c *Copy) copyLists(ctx context.Context) error {
	listed := map[string]bool{}
	err := c.From.List(ctx, catalog.CollectedPrefix, func(name string, _ int64) error {
		listed[name] = true
		return nil
	})
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelRecords)
	for name := range listed {
		if c.target.lists[name] {
			continue
		}
		g.Go(func() error {
			var data []byte
			err := retry(ctx, func() (err error) {
				data, err = c.From.Get(ctx, name)
				return err
			})
			if errors.Is(err, bucket.ErrNotFound) { // purged since it was listed
				return nil
			}
			if err == nil {
				err = put(ctx, c.To, name, data)
			}
			return err
		})
	}
	for name := range c.target.lists {
		if !listed[name] {
			g.Go(func() error { return remove(ctx, c.To, name) })
		}
	}
	return g.Wait()
}

// removeExtra deletes the records that the source has collected: first those that hold a block, and then
// those that replace it. Blocks that lose their record get a marker, or else they would count as lost.
func (t *target) removeExtra(ctx context.Context, r *Report, records []catalog.Stored) error {
	sorted := layers(append(slices.Clone(t.extra), records...))
	going := map[string]bool{}
	for i := range t.extra {
		going[t.extra[i].ID] = true
	}
	for _, layer := range slices.Backward(sorted) {
		for _, s := range layer {
			if !going[s.ID] {
				continue
			}
			if err := t.removeRecord(ctx, s); err != nil {
				return err
			}
			r.Removed++
		}
	}
	return nil
}

func (t *target) removeRecord(ctx context.Context, s *catalog.Stored) error {
	for i := range s.Blocks {
		id := s.Blocks[i].ID
		if _, present := t.sizes[id]; present {
			if err := retry(ctx, func() error { return t.mark(ctx, id) }); err != nil {
				return err
			}
		}
	}
	if err := remove(ctx, t.b, catalog.CopyName(s.Name())); err != nil {
		return err
	}
	return remove(ctx, t.b, s.Name())
}

// removeBlocks deletes the objects of blocks that are not visible, as far as copies have written them, and
// all markers of copies.
func (t *target) removeBlocks(ctx context.Context, r *Report, live []catalog.Block) error {
	keep := map[string]bool{}
	for i := range live {
		keep[live[i].ID] = true
	}
	ours := maps.Clone(t.marked)
	for id := range t.verified {
		ours[id] = true
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelRecords)
	for id := range ours {
		_, present := t.sizes[id]
		gone := !keep[id] && (present || t.marked[id])
		if gone {
			r.Removed++
		}
		if !gone && !t.marked[id] {
			continue
		}
		g.Go(func() error {
			if gone {
				if err := remove(ctx, t.b, catalog.ObjectName(id)); err != nil {
					return err
				}
			}
			return remove(ctx, t.b, markerName(id))
		})
	}
	return g.Wait()
}

// copyTopics copies the objects of epochs of topics. Without them, a new epoch of the copy would have the
// number of one whose offsets its records cover, and rows would be taken for shipped.
func (c *Copy) copyTopics(ctx context.Context) error {
	var names []string
	err := c.From.List(ctx, catalog.TopicPrefix, func(name string, _ int64) error {
		names = append(names, name)
		return nil
	})
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	for _, name := range names {
		data, err := c.From.Get(ctx, name)
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		if err := put(ctx, c.To, name, data); err != nil {
			return fmt.Errorf("target: %w", err)
		}
	}
	return nil
}

// putSeed makes a new target a bucket that servers accept.
func (c *Copy) putSeed(ctx context.Context) error {
	if c.target.seeded && c.target.copies[catalog.SeedName] {
		return nil
	}
	data, err := c.From.Get(ctx, catalog.SeedName)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	err = retry(ctx, func() error {
		_, err := c.To.PutIfAbsent(ctx, catalog.SeedName, data)
		return err
	})
	if err == nil {
		err = put(ctx, c.To, catalog.CopyName(catalog.SeedName), data)
	}
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	return nil
}

func remove(ctx context.Context, b bucket.Bucket, name string) error {
	return retry(ctx, func() error { return b.Delete(ctx, name) })
}
