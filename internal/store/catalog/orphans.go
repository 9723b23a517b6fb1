package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// orphan is an object of an upload that was not committed: a block without a record, or a marker.
type orphan struct {
	since int64
	// seen counts the collections that found it. One is not enough at any age: the clock may have been stepped.
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
// upload backwards, so that an upload in progress is not taken for a leftover: objects, markers, records.
func (c *Catalog) findLeftovers(ctx context.Context) (*leftovers, error) {
	list := func(prefix string) (sizes map[string]int64, err error) {
		sizes = map[string]int64{}
		err = c.b.List(ctx, prefix, func(name string, size int64) error {
			sizes[name] = size
			return nil
		})
		return sizes, err
	}
	objects, err := list(blockPrefix)
	if err != nil {
		return nil, err
	}
	markers, err := list(uploadPrefix)
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
		id := markedBlock(name)
		marked[id] = true
		if c.uploading[id] == 0 {
			l.orphans[name] = id
		}
	}
	var unexplained []string
	for name := range objects {
		id := strings.TrimPrefix(name, blockPrefix)
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
	now := c.now()
	seen := map[string]*orphan{}
	var blocks, markers []string
	c.mu.Lock()
	for name := range l.orphans {
		o := c.orphans[name]
		if o == nil {
			o = &orphan{since: now}
		}
		// A clock that was stepped back must not make the object wait longer.
		o.since = min(o.since, now)
		o.seen++
		if seen[name] = o; o.seen < orphanSightings || o.since > before {
			continue
		}
		if strings.HasPrefix(name, blockPrefix) {
			blocks = append(blocks, name)
		} else {
			markers = append(markers, name)
		}
	}
	c.orphans = seen
	c.mu.Unlock()
	c.noteStrays(ctx, l.strays)
	if len(blocks) == 0 && len(markers) == 0 {
		return nil
	}
	// Another process may have committed one of the blocks since it was listed.
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	var errs []error
	kept := map[string]bool{} // blocks whose markers must stay
	for name, id := range l.orphans {
		kept[id] = kept[id] || strings.HasPrefix(name, blockPrefix)
	}
	for _, name := range blocks {
		deleted, err := c.deleteOrphan(ctx, l.orphans[name], markers)
		if err != nil {
			errs = append(errs, err)
		}
		if !deleted {
			continue
		}
		c.dropOrphan(name)
		kept[l.orphans[name]] = false
		done.Orphans++
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
		c.dropOrphan(name)
	}
	return errors.Join(errs...)
}

// deleteOrphan deletes the object of an upload, unless somebody is uploading the block again or has committed
// it. Uploads of this process wait for the deletion; those of others have a marker that is not among the old
// ones.
func (c *Catalog) deleteOrphan(ctx context.Context, id string, old []string) (deleted bool, err error) {
	c.mu.Lock()
	if c.holder[id] != nil || c.uploading[id] > 0 {
		c.mu.Unlock()
		return false, nil
	}
	over := make(chan struct{})
	c.deleting[id] = over
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.deleting, id)
		close(over)
	}()
	again := false
	err = c.b.List(ctx, uploadPrefix+id+".", func(name string, _ int64) error {
		again = again || markedBlock(name) == id && !slices.Contains(old, name)
		return nil
	})
	if again || err != nil {
		return false, err
	}
	r, err := c.readOne(ctx, id)
	if err != nil {
		return false, err
	}
	if r != nil {
		c.know(r)
		return false, nil
	}
	err = c.b.Delete(ctx, ObjectName(id))
	return err == nil, err
}

func (c *Catalog) dropOrphan(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.orphans, name)
}

// noteStrays makes blocks known whose records are lost, and logs the new ones.
func (c *Catalog) noteStrays(ctx context.Context, sizes map[string]int64) {
	c.mu.Lock()
	was := c.strays
	c.mu.Unlock()
	strays, news := map[string]Block{}, 0
	for id, size := range sizes {
		b, known := was[id]
		if !known {
			b = c.describeStray(ctx, id, size)
			if news++; news <= logAtOnce {
				c.log.Error("the commit record of a block is lost with its copies; queries of its tenants and times fail, and it is never collected",
					"block", ObjectName(id), "tenants", brief(b.tenantNames()), "from", instant(b.Range.Min), "to", instant(b.Range.Max), "remedy", remedy)
			}
		}
		strays[id] = b
	}
	if news > logAtOnce {
		c.log.Error("more blocks have lost their commit records", "count", news-logAtOnce, "remedy", remedy)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strays = strays
	c.publish()
}

// describeStray returns the entry of a block without a record. If the block cannot be read, it may have rows
// of every tenant and time of its signal, which its name tells.
func (c *Catalog) describeStray(ctx context.Context, id string, size int64) Block {
	if c.describe != nil {
		b, err := c.describe(ctx, id, size)
		if err == nil {
			return b
		}
		c.log.Error("a block whose commit record is lost cannot be read", "block", ObjectName(id), "err", err)
	}
	b := Block{ID: id, Signal: model.Metrics, Range: model.Always()}
	if strings.Contains(id, "-"+model.Logs.String()+"-") {
		b.Signal = model.Logs
	}
	return b
}

// tenantNames returns the tenants of a block for a log line.
func (b *Block) tenantNames() []string {
	if b.Tenants != nil {
		return b.Tenants
	}
	return []string{b.FirstTenant, "...", b.LastTenant}
}
