package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// remedy is the end of log lines about losses.
const remedy = "shale inspect catalogue BUCKET --check, and docs/operations.md, Damaged objects in the bucket"

// verdict says why records are gone.
type verdict struct {
	lost      []*commit
	collected []string
}

// judge finds out why records are missing from the bucket: somebody has collected them, or they are lost. A
// nil record is read from a copy. A stale memory cannot tell a collected record from a lost one, unless
// objects of its blocks are left: these are deleted first.
func (c *Catalog) judge(ctx context.Context, absent map[string]*commit, stale bool) (v verdict, err error) {
	c.mu.Lock()
	was, before := maps.Clone(c.lost), c.searched
	c.mu.Unlock()
	var mu sync.Mutex
	missing := map[string]*commit{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for id, r := range absent {
		g.Go(model.Catching(func() error {
			if was[id] && r != nil {
				mu.Lock()
				defer mu.Unlock()
				missing[id] = r
				return nil
			}
			// It may have been written since the listing.
			if _, err := c.b.Get(gctx, recordName(id)); !errors.Is(err, bucket.ErrNotFound) {
				return err
			}
			if r == nil {
				var err error
				if r, err = c.spare(gctx, id); errors.Is(err, bucket.ErrNotFound) {
					return nil // collected in the meantime
				} else if err != nil {
					return fmt.Errorf("%s is lost, and its copy %s cannot be read: %w", recordName(id), copyName(recordName(id)), err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			missing[id] = r
			return nil
		}))
	}
	if err := g.Wait(); err != nil {
		return v, err
	}
	left := maps.Clone(missing)
	skip := func(string) bool { return false }
	if before.cover(missing) {
		skip = func(name string) bool { return before.lists[name] }
	}
	names, err := collectedAmong(ctx, c.b, left, skip)
	if err != nil {
		return v, err
	}
	var unsure []string
	for id, r := range missing {
		switch {
		case left[id] == nil:
			v.collected = append(v.collected, id)
		case stale && !was[id] && len(c.missingBlocks(ctx, r)) == len(r.blocks):
			unsure = append(unsure, recordName(id))
		default:
			v.lost = append(v.lost, r)
		}
	}
	if len(unsure) > 0 {
		slices.Sort(unsure)
		c.log.Warn("commit records are gone, and this process was away for too long to know whether they were collected", "count", len(unsure), "records", brief(unsure))
	}
	for _, name := range unsure {
		if id, err := recordOf(name); err == nil {
			v.collected = append(v.collected, id)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.searched = searched(left, names)
	return v, nil
}

// apply makes a verdict about records known, and returns the records that are newly lost. known are the
// records at the time of the listing: what this process has changed since is right. mu must be held.
func (c *Catalog) apply(v verdict, known map[string]*commit) (found []*commit) {
	for _, id := range v.collected {
		if r := c.records[id]; r != nil && r == known[id] {
			c.forget(r)
		}
	}
	for _, r := range v.lost {
		if now := c.records[r.id]; now != known[r.id] || c.lost[r.id] {
			continue
		}
		c.add(r)
		c.lost[r.id] = true
		found = append(found, r)
	}
	return found
}

// missingBlocks returns the blocks of a record that have no object.
func (c *Catalog) missingBlocks(ctx context.Context, r *commit) (ids []string) {
	for i := range r.blocks {
		id := r.blocks[i].ID
		if _, err := c.b.GetRange(ctx, ObjectName(id), 0, 0); errors.Is(err, bucket.ErrNotFound) {
			ids = append(ids, id)
		}
	}
	return ids
}

// logAtOnce bounds the log lines about records that are lost together, and the names in one of them.
const logAtOnce = 20

// reportLost logs records that are newly lost.
func (c *Catalog) reportLost(ctx context.Context, rs []*commit) {
	for i, r := range rs {
		if i == logAtOnce {
			c.log.Error("further lost commit records are not listed", "count", len(rs)-i, "remedy", remedy)
			return
		}
		var blocks, tenants []string
		all := model.TimeRange{Min: 1, Max: 0}
		for k := range r.blocks {
			b := &r.blocks[k]
			blocks, tenants = append(blocks, b.ID), append(tenants, b.TenantNames()...)
			if all.Min > all.Max {
				all = b.Range
			}
			all.Min, all.Max = min(all.Min, b.Range.Min), max(all.Max, b.Range.Max)
		}
		slices.Sort(tenants)
		tenants = slices.Compact(tenants)
		gone := slices.DeleteFunc(c.missingBlocks(ctx, r), func(id string) bool { return !c.Has(id) })
		text := "a commit record is lost; its copy is used, and nothing is missing yet"
		if len(gone) > 0 {
			text = "a commit record is lost, and blocks of it too; queries of their tenants and times fail"
		}
		c.log.Error(text, "record", recordName(r.id), "blocks", brief(blocks), "missing_blocks", brief(gone), "tenants", brief(tenants),
			"from", instant(all.Min), "to", instant(all.Max), "replaces", len(r.replaces), "deletion", r.deletion != nil, "remedy", remedy)
	}
}

func brief(names []string) string {
	if len(names) > logAtOnce {
		names = append(slices.Clone(names[:logAtOnce]), "...")
	}
	return strings.Join(names, " ")
}

func instant(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }
