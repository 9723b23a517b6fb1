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

// recall compares the memory with the bucket, after the first refresh, and then remembers what is new.
func (c *Catalog) recall(ctx context.Context) error {
	if c.memory == nil {
		return nil
	}
	remembered, absent := map[string]bool{}, map[string]*commit{}
	c.mu.Lock()
	known := maps.Clone(c.records)
	c.mu.Unlock()
	err := c.memory.List(ctx, recordPrefix, func(name string, _ int64) error {
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
	checked, err := c.checked(ctx)
	if err != nil {
		c.forgets(err)
	}
	v, err := c.judge(ctx, absent, c.now()-checked > int64(listsKept))
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
	c.unremember(ctx, v.collected)
	c.rememberAll(ctx, news)
	c.noteChecked(ctx)
	return nil
}

// checked returns the time of the last comparison of memory and bucket, now if there was none.
func (c *Catalog) checked(ctx context.Context) (int64, error) {
	data, err := c.memory.Get(ctx, checkedName)
	if errors.Is(err, bucket.ErrNotFound) {
		return c.now(), nil
	}
	var r checkedRecord
	if err == nil {
		err = parse(checkedName, data, checkedVersion, &r)
	}
	return r.Checked, err
}

// noteEvery is the time after which a refresh writes the time of the comparison again.
const noteEvery = time.Hour

// noteChecked writes the time of a comparison, which is now.
func (c *Catalog) noteChecked(ctx context.Context) {
	now := c.now()
	c.mu.Lock()
	recent := c.recalled && now-c.noted < int64(noteEvery) && now >= c.noted
	if c.recalled = true; !recent {
		c.noted = now
	}
	c.mu.Unlock()
	if recent {
		return
	}
	data, err := json.Marshal(checkedRecord{checkedVersion, now})
	if err == nil {
		data = sealed(append(data, '\n'))
		err = c.memory.Put(ctx, checkedName, strings.NewReader(string(data)), int64(len(data)))
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
		g.Go(func() error {
			_, data, err := r.stored()
			if err != nil {
				return err
			}
			c.remember(ctx, r.id, data)
			return nil
		})
	}
	c.forgets(g.Wait())
}

// unremember removes records from the memory.
func (c *Catalog) unremember(ctx context.Context, ids []string) {
	if c.memory == nil {
		return
	}
	for _, id := range ids {
		if err := c.memory.Delete(ctx, recordName(id)); err != nil {
			c.forgets(err)
			return
		}
	}
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
