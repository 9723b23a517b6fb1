package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// orphan is an object of an upload that was not committed: a block without a record, or a marker.
type orphan struct {
	since int64
	// seen counts the collections of this process that found it. One is not enough at any age: the clock may
	// have been stepped.
	seen int
}

// orphanSightings is how often an orphan must have been seen.
const orphanSightings = 3

// leftovers are the objects of uploads that have no record.
type leftovers struct {
	// orphans maps the name of each object that may be deleted to its block.
	orphans map[string]string
	// strays are blocks without a record and without a marker, with their sizes.
	strays map[string]int64
}

// findLeftovers lists blocks without records, and markers that are not needed. It lists in the order of an
// upload backwards, one list after the other, so that an upload in progress is not taken for a leftover:
// objects, markers, records.
func (c *Catalog) findLeftovers(ctx context.Context) (*leftovers, error) {
	list := func(prefix string) (sizes map[string]int64, err error) {
		sizes = map[string]int64{}
		err = c.b.List(ctx, prefix, func(name string, size int64) error {
			sizes[name] = size
			return nil
		})
		return sizes, err
	}
	objects, err := list(BlockPrefix)
	if err != nil {
		return nil, err
	}
	markers, err := list(UploadPrefix)
	if err != nil {
		return nil, err
	}
	if err := c.Refresh(ctx); err != nil {
		return nil, err
	}
	l := &leftovers{orphans: map[string]string{}, strays: map[string]int64{}}
	marked := map[string]bool{}
	c.mu.Lock()
	for name := range markers {
		id, claim := markedBlock(name)
		marked[id] = marked[id] || !claim
		if c.uploading[id] == 0 {
			l.orphans[name] = id
		}
	}
	var unexplained []string
	for name := range objects {
		id := strings.TrimPrefix(name, BlockPrefix)
		switch {
		case c.holder[id] != nil || c.uploading[id] > 0:
		case marked[id]:
			l.orphans[name] = id
		default:
			unexplained = append(unexplained, id)
		}
	}
	c.mu.Unlock()
	for _, id := range unexplained {
		// Another process may have collected the block and then its record.
		_, err := c.b.GetRange(ctx, ObjectName(id), 0, 0)
		switch {
		case err == nil:
			l.strays[id] = objects[ObjectName(id)]
		case !errors.Is(err, bucket.ErrNotFound):
			return nil, err
		}
	}
	return l, nil
}

// collectOrphans deletes objects of uploads that have had no record since a time, and that this process is
// not uploading. Blocks that had a record stay.
func (c *Catalog) collectOrphans(ctx context.Context, before int64, done *Collected) error {
	l, err := c.findLeftovers(ctx)
	if err != nil {
		return err
	}
	c.sought = c.now()
	blocks, markers, changed := c.ageOrphans(ctx, l, before)
	defer func() {
		if changed {
			c.rememberOrphans(ctx)
		}
	}()
	c.noteStrays(ctx, l.strays)
	kept := map[string]bool{} // blocks whose markers must stay
	for name, id := range l.orphans {
		kept[id] = kept[id] || strings.HasPrefix(name, BlockPrefix)
	}
	old := map[string]bool{}
	for _, name := range markers {
		old[name] = true
	}
	var errs []error
	for ids := range slices.Chunk(blocks, claimsAtOnce) {
		deleted, err := c.deleteOrphans(ctx, ids, old)
		errs = append(errs, err)
		for _, id := range deleted {
			c.dropOrphan(ObjectName(id), id)
			kept[id], changed = false, true
			done.Orphans++
		}
	}
	// After the blocks: a block without a marker would count as lost.
	for _, name := range markers {
		if kept[l.orphans[name]] {
			continue
		}
		if err := c.b.Delete(ctx, name); err != nil {
			errs = append(errs, err)
			continue
		}
		c.dropOrphan(name, l.orphans[name])
		changed = true
	}
	return errors.Join(errs...)
}

// ageOrphans notes which orphans there are, and returns the blocks and the names of markers that may be
// deleted, and whether others are there than last time. A marker next to a record that is older than before
// needs no sightings: it was left by a crash, and while it is there, a loss of the record would look like a
// failed upload.
func (c *Catalog) ageOrphans(ctx context.Context, l *leftovers, before int64) (blocks, markers []string, changed bool) {
	now := c.now()
	seen := map[string]*orphan{}
	c.mu.Lock()
	was := c.orphans
	c.mu.Unlock()
	if was == nil {
		was = c.recallOrphans(ctx)
	}
	changed = len(was) != len(l.orphans)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, id := range l.orphans {
		o := was[name]
		if o == nil {
			o, changed = &orphan{since: now}, true
		}
		// A clock that was stepped back must not make the object wait longer.
		o.since = min(o.since, now)
		o.seen++
		seen[name] = o
		r := c.holder[id]
		if committed := r != nil && r.committed <= before; !committed && (o.seen < orphanSightings || o.since > before) {
			continue
		}
		if strings.HasPrefix(name, BlockPrefix) {
			blocks = append(blocks, id)
		} else {
			markers = append(markers, name)
		}
	}
	c.orphans = seen
	return blocks, markers, changed
}

// claimsAtOnce bounds the claims that are written before the first of their blocks is deleted. Written one
// after the other, they must be much younger than maxClaim by then, even if the bucket is slow.
const claimsAtOnce = 16

// deleteOrphans deletes the objects of uploads, except for blocks that are being uploaded again or that have
// a record. Uploads of this process wait for the deletion. Those of others meet the claims; see uploads.go
// for why none is missed. old are the markers of the failed uploads. An upload that takes longer than the
// age of an old marker is not protected; [Catalog.Ship] and merges give up long before.
func (c *Catalog) deleteOrphans(ctx context.Context, ids []string, old map[string]bool) (deleted []string, err error) {
	ids = c.reserveDeletion(ids)
	began := time.Now()
	var errs []error
	claims := map[string]string{}
	defer func() {
		for _, name := range claims {
			if e := c.b.Delete(ctx, name); e != nil {
				c.log.Debug("cannot delete the claim to a block; it is collected later", "claim", name, "err", e)
			}
		}
		for _, id := range ids {
			c.releaseDeletion(id)
		}
	}()
	for _, id := range ids {
		claims[id] = claimName(id)
		if _, err := c.b.PutIfAbsent(ctx, claims[id], []byte(id+"\n")); err != nil {
			return nil, err
		}
	}
	again := map[string]bool{}
	err = c.b.List(ctx, UploadPrefix, func(name string, _ int64) error {
		if id, claim := markedBlock(name); !claim && !old[name] {
			again[id] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// After the markers: a marker that is gone by now has left a record.
	if err := c.Refresh(ctx); err != nil {
		return nil, err
	}
	for _, id := range ids {
		c.mu.Lock()
		needed := again[id] || c.holder[id] != nil
		c.mu.Unlock()
		if needed {
			continue
		}
		// The monotonic clock stops while the machine sleeps; the wall clock does not.
		if now := time.Now(); now.Sub(began) > maxClaim || now.Round(0).Sub(began.Round(0)) > maxClaim {
			break // the next collection continues
		}
		if err := c.b.Delete(ctx, ObjectName(id)); err != nil {
			errs = append(errs, err)
			continue
		}
		deleted = append(deleted, id)
	}
	return deleted, errors.Join(errs...)
}

// reserveDeletion makes uploads of this process wait for the deletion of blocks, and returns those that no
// upload was faster to reserve.
func (c *Catalog) reserveDeletion(ids []string) (reserved []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if c.holder[id] == nil && c.uploading[id] == 0 {
			c.deleting[id] = make(chan struct{})
			reserved = append(reserved, id)
		}
	}
	return reserved
}

func (c *Catalog) releaseDeletion(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.deleting[id])
	delete(c.deleting, id)
}

// dropOrphan forgets an object that was deleted.
func (c *Catalog) dropOrphan(name, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.orphans, name)
	if c.markers[id] = slices.DeleteFunc(c.markers[id], func(m string) bool { return m == name }); len(c.markers[id]) == 0 {
		delete(c.markers, id)
	}
}

// noteStrays makes blocks known whose records are lost, and logs the new ones.
func (c *Catalog) noteStrays(ctx context.Context, sizes map[string]int64) {
	c.mu.Lock()
	was := c.strays
	c.mu.Unlock()
	strays, news, unreadable := map[string]Block{}, 0, 0
	for id, size := range sizes {
		b, known := was[id]
		if !known {
			var err error
			if b, err = c.describeStray(ctx, id, size); err != nil {
				if unreadable++; unreadable <= logAtOnce {
					c.log.Error("a block whose commit record is lost cannot be read", "block", ObjectName(id), "err", err)
				}
			}
			if news++; news <= logAtOnce {
				c.log.Error("the commit record of a block is lost with its copies; queries of its tenants and times fail, and it is never collected",
					"block", ObjectName(id), "tenants", brief(b.TenantNames()), "from", instant(b.Range.Min), "to", instant(b.Range.Max), "remedy", remedy)
			}
		}
		strays[id] = b
	}
	if news > logAtOnce {
		c.log.Error("further blocks without a commit record are not listed", "count", news-logAtOnce, "unreadable", unreadable, "remedy", remedy)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strays = strays
	c.publish()
}

// describeStray returns the entry of a block without a record. If the block cannot be read, it may have rows
// of every tenant and time of its signal, which its name tells.
func (c *Catalog) describeStray(ctx context.Context, id string, size int64) (b Block, err error) {
	if c.describe != nil {
		if b, err = c.describe(ctx, id, size); err == nil {
			return b, nil
		}
	}
	b = Block{ID: id, Signal: model.Metrics, Range: model.Always()}
	if strings.Contains(id, "-"+model.Logs.String()+"-") {
		b.Signal = model.Logs
	}
	return b, err
}
