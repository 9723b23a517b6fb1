package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/checksum"
)

// The memory holds records under the names that they have in the bucket, so that a lost one can be put back
// by copying a file. It only helps: if it fails, the catalogue works on without it.

// checkedName is the object of the memory that says when it was last compared with the bucket.
const checkedName = "checked"

const checkedVersion = 1

type checkedRecord struct {
	Version int   `json:"version"`
	Checked int64 `json:"checked"` // Unix nanoseconds
}

// compareEvery is the time after which a refresh compares memory and bucket again. That repeats what the
// memory has failed to do: a record that it could not forget would count as lost once the lists of collected
// records are purged, and the loss of one that it does not have would not be noticed.
const compareEvery = time.Hour

// recallDue reports whether the comparison of [Open] is to be repeated.
func (c *Catalog) recallDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	return c.compared != 0 && (now-c.compared >= int64(compareEvery) || now < c.compared)
}

// recall compares the memory with the known records. It forgets what was collected, remembers what is new,
// and notes the time of the comparison if it could forget all of it.
func (c *Catalog) recall(ctx context.Context) error {
	if c.memory == nil {
		return nil
	}
	now := c.now()
	c.mu.Lock()
	c.compared = now
	known := maps.Clone(c.records)
	c.mu.Unlock()
	remembered, absent := map[string]bool{}, map[string]*commit{}
	err := c.memory.List(ctx, RecordPrefix, func(name string, _ int64) error {
		if id, err := recordOf(name); err == nil {
			if remembered[id] = true; known[id] == nil {
				absent[id] = nil
			}
		}
		return nil
	})
	if err != nil {
		c.forgets(err)
		return nil
	}
	checked, err := c.checked(ctx, len(remembered) == 0)
	if err != nil {
		c.forgets(err)
	}
	v, err := c.judge(ctx, absent, now-checked > int64(listsKept))
	if err != nil {
		return err
	}
	c.mu.Lock()
	found := c.apply(v, known)
	c.publish()
	var news []*commit
	for id, r := range c.records {
		if !remembered[id] {
			news = append(news, r)
		}
	}
	c.mu.Unlock()
	c.reportLost(ctx, found)
	// The time comes before the new records: a memory with records and without a time is of an unknown age.
	if c.unremember(ctx, v.collected) {
		c.noteChecked(ctx, now)
	}
	c.rememberAll(ctx, news)
	return nil
}

// checked returns the time of the last comparison of memory and bucket. Without one it returns now if the
// memory is empty, and otherwise 0.
func (c *Catalog) checked(ctx context.Context, empty bool) (int64, error) {
	data, err := c.memory.Get(ctx, checkedName)
	if errors.Is(err, bucket.ErrNotFound) {
		if empty {
			return c.now(), nil
		}
		return 0, nil
	}
	var r checkedRecord
	if err == nil {
		err = checksum.Parse(checkedName, data, checkedVersion, &r)
	}
	return r.Checked, err
}

// noteChecked writes the time of a comparison.
func (c *Catalog) noteChecked(ctx context.Context, at int64) {
	data, err := json.Marshal(checkedRecord{checkedVersion, at})
	if err == nil {
		data = checksum.Seal(append(data, '\n'))
		err = c.memory.Put(ctx, checkedName, strings.NewReader(string(data)), int64(len(data)))
	}
	c.forgets(err)
}

// orphansName is the object of the memory that says since when there are objects of failed uploads. Without
// it a server that is restarted every day would never collect them.
const orphansName = "orphans"

const orphansVersion = 1

type orphansRecord struct {
	Version int `json:"version"`
	// Since is when each object was first seen, by name, in Unix nanoseconds.
	Since map[string]int64 `json:"since"`
}

// recallOrphans returns since when there are objects of failed uploads, as far as it is remembered.
func (c *Catalog) recallOrphans(ctx context.Context) map[string]*orphan {
	found := map[string]*orphan{}
	if c.memory == nil {
		return found
	}
	data, err := c.memory.Get(ctx, orphansName)
	if errors.Is(err, bucket.ErrNotFound) {
		return found
	}
	var r orphansRecord
	if err == nil {
		err = checksum.Parse(orphansName, data, orphansVersion, &r)
	}
	c.forgets(err)
	for name, since := range r.Since {
		found[name] = &orphan{since: since}
	}
	return found
}

// rememberOrphans writes since when there are objects of failed uploads.
func (c *Catalog) rememberOrphans(ctx context.Context) {
	if c.memory == nil {
		return
	}
	since := map[string]int64{}
	c.mu.Lock()
	for name, o := range c.orphans {
		since[name] = o.since
	}
	c.mu.Unlock()
	data, err := json.Marshal(orphansRecord{orphansVersion, since})
	if err == nil {
		data = checksum.Seal(append(data, '\n'))
		err = c.memory.Put(ctx, orphansName, strings.NewReader(string(data)), int64(len(data)))
	}
	c.forgets(err)
}

// remember adds a record to the memory.
func (c *Catalog) remember(ctx context.Context, id string, data []byte) {
	if c.memory != nil {
		c.forgets(c.memory.Put(ctx, recordName(id), strings.NewReader(string(data)), int64(len(data))))
	}
}

func (c *Catalog) rememberAll(ctx context.Context, rs []*commit) {
	if c.memory == nil {
		return
	}
	var g errgroup.Group
	g.SetLimit(parallelReads)
	for _, r := range rs {
		if r == nil {
			continue
		}
		g.Go(model.Catching(func() error {
			_, data, err := r.stored()
			if err != nil {
				return err
			}
			c.remember(ctx, r.id, data)
			return nil
		}))
	}
	c.forgets(g.Wait())
}

// unremember removes records from the memory, and reports whether it has removed all of them. The next
// comparison removes the rest.
func (c *Catalog) unremember(ctx context.Context, ids []string) bool {
	if c.memory == nil {
		return true
	}
	for _, id := range ids {
		if err := c.memory.Delete(ctx, recordName(id)); err != nil {
			c.forgets(err)
			return false
		}
	}
	return true
}

// forgets logs that the memory has failed, once until it works again.
func (c *Catalog) forgets(err error) {
	if err != nil && (errors.Is(err, context.Canceled) || errors.Is(err, model.ErrClosed)) {
		return
	}
	c.mu.Lock()
	was := c.forgetful
	c.forgetful = err != nil
	c.mu.Unlock()
	if err != nil && !was {
		c.log.Warn("the catalogue cannot remember records on this machine; a loss may go unnoticed", "err", fmt.Errorf("memory: %w", err))
	}
}
