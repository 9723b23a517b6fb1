package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// parallelReads bounds the records that are read at one time. A small read from a bucket takes tens of
// milliseconds, so that 5,000 records take a few seconds.
const parallelReads = 64

// Refresh reads the records that other processes have written since the last call, and forgets those that
// they have collected. Records do not change, so a known record is not read again. A known record that is
// gone and that no process has collected is lost: it stays known, and is reported.
//
// Everything committed before the call is known when Refresh returns. Commits during the call may or may not
// be.
func (c *Catalog) Refresh(ctx context.Context) error {
	for {
		again, err := c.refresh(ctx)
		if err != nil {
			return fmt.Errorf("catalogue: %w", err)
		}
		// A listing that found a deletion may have missed an earlier one that was still being written. A
		// catalogue that knows a generation must know all earlier ones, so list once more.
		if again {
			continue
		}
		if !c.recallDue() {
			return nil
		}
		if err := c.recall(ctx); err != nil {
			return fmt.Errorf("catalogue: %w", err)
		}
		return nil
	}
}

// pollFor is how long Poll trusts the last listing. It must be well below shipsKept.
const pollFor = 6 * time.Hour

// Poll reads the ships that other processes have written since the last call. If there are none, it makes one
// request. It does not find merges, expired blocks and deletions: call Refresh within the grace of hidden
// blocks ([CollectOptions]).
func (c *Catalog) Poll(ctx context.Context) error {
	c.mu.Lock()
	now, listed, next := c.now(), c.listed, max(c.lastShip, c.maxOrder)+1
	c.mu.Unlock()
	if now < listed || now-listed > int64(pollFor) {
		return c.Refresh(ctx)
	}
	ships, err := c.readFrom(ctx, shipID, next)
	if err != nil {
		return fmt.Errorf("catalogue: %w", err)
	}
	if len(ships) == 0 {
		return nil
	}
	// A shipper that crosses a deletion has seen its record. So does every process that sees the ship: a merge
	// that knows one without the other would join rows of both sides.
	if err := c.PollDeletions(ctx); err != nil {
		return err
	}
	for _, r := range ships {
		c.know(r)
	}
	c.rememberAll(ctx, ships)
	return nil
}

// PollDeletions reads the deletions that other processes have made since the last call. If there are none, it
// makes one request. It does not find cancellations: [Catalog.Refresh] does.
func (c *Catalog) PollDeletions(ctx context.Context) error {
	found, err := c.readFrom(ctx, deletionID, c.lastDeletion()+1)
	if err != nil {
		return fmt.Errorf("catalogue: %w", err)
	}
	for _, r := range found {
		c.know(r)
	}
	c.rememberAll(ctx, found)
	return nil
}

// lastDeletion returns the greatest generation of which the record is known. The greatest of all is never
// collected. maxGeneration may be greater: a listing may show a merge that knows a deletion, and not the
// record of the deletion, which was written after its turn.
func (c *Catalog) lastDeletion() (last uint64) {
	for _, d := range c.view.Load().requests { // the greatest of those without a request is among them
		last = max(last, d.Generation)
	}
	return last
}

// readFrom reads records with numbers without gaps, from one on.
func (c *Catalog) readFrom(ctx context.Context, id func(n uint64) string, n uint64) (found []*commit, err error) {
	for ; ; n++ {
		r, err := c.readOne(ctx, id(n))
		if r == nil || err != nil {
			return found, err
		}
		found = append(found, r)
	}
}

// withDeletions adds to what a listing has found the deletions that it missed, if it found ships (see Poll)
// or what refers to a later deletion.
func (c *Catalog) withDeletions(ctx context.Context, read []*commit) ([]*commit, error) {
	last, ships, refers := c.lastDeletion(), false, uint64(0)
	for _, r := range read {
		if r == nil {
			continue
		}
		if r.deletion != nil {
			last = max(last, r.deletion.Generation)
		}
		ships = ships || r.ship > 0
		for i := range r.blocks {
			refers = max(refers, r.blocks[i].Generation)
		}
		for _, x := range r.clean {
			refers = max(refers, x.Generation)
		}
	}
	if !ships && refers <= last {
		return read, nil
	}
	more, err := c.readFrom(ctx, deletionID, last+1)
	return append(read, more...), err
}

func (c *Catalog) refresh(ctx context.Context) (deletions bool, err error) {
	began := c.now()
	c.mu.Lock()
	known, damaged, lost := maps.Clone(c.records), maps.Clone(c.damaged), maps.Clone(c.lost)
	c.mu.Unlock()

	// The copies first: a copy is written after its record and deleted before it. So the two listings must not
	// run at the same time.
	copied, err := c.listCopies(ctx)
	if err != nil {
		return false, err
	}
	listed, fresh := map[string]bool{}, []string(nil)
	err = c.b.List(ctx, RecordPrefix, func(name string, _ int64) error {
		id, err := recordOf(name)
		if listed[id] = true; err == nil && (known[id] == nil || damaged[id] || lost[id]) {
			fresh = append(fresh, id)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	absent := map[string]*commit{}
	for id := range copied {
		if !listed[id] {
			absent[id] = nil
		}
	}
	for id, r := range known {
		if !listed[id] {
			absent[id] = r
		}
	}
	read, err := c.read(ctx, fresh)
	if err == nil {
		read, err = c.withDeletions(ctx, read)
	}
	if err != nil {
		return false, err
	}
	v, err := c.judge(ctx, absent, false)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	c.copied, c.listed = copied, began
	for _, r := range read {
		if r == nil {
			continue
		}
		deletions = deletions || r.deletion != nil && known[r.id] == nil
		// A process that did not know a lost ship may have taken its number.
		if was := c.records[r.id]; was != nil && was.attempt != r.attempt {
			c.forget(was)
		}
		c.add(r)
	}
	found := c.apply(v, known)
	var back []string
	for id := range c.lost {
		if listed[id] {
			delete(c.lost, id)
			back = append(back, id)
		}
	}
	c.publish()
	c.mu.Unlock()
	for _, id := range back {
		c.log.Info("a lost commit record is back", "record", recordName(id))
	}
	c.reportLost(ctx, found)
	c.rememberAll(ctx, read)
	c.unremember(ctx, v.collected)
	return deletions, nil
}

// recordOf returns the id of the record of a name.
func recordOf(name string) (string, error) {
	id, ok := strings.CutSuffix(strings.TrimPrefix(name, RecordPrefix), recordSuffix)
	if !ok || strings.Contains(id, "/") {
		return "", fmt.Errorf("%s: %w: this is not the name of a commit record", name, model.ErrCorrupt)
	}
	return id, nil
}

// read returns the records of the ids, nil for those that have been deleted since they were listed.
func (c *Catalog) read(ctx context.Context, ids []string) ([]*commit, error) {
	records := make([]*commit, len(ids))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for i, id := range ids {
		g.Go(model.Catching(func() (err error) {
			records[i], err = c.readOne(ctx, id)
			return err
		}))
	}
	return records, g.Wait()
}

// parseCompiled reads a record and compiles the filter of a deletion.
func (c *Catalog) parseCompiled(name string, data []byte) (*commit, error) {
	r, err := parseRecord(name, data)
	if err == nil && r.deletion != nil {
		if err = r.deletion.Compile(c.filters); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r, err
}

// readOne returns a record, or nil if there is none. If the record is damaged, it returns an intact copy.
func (c *Catalog) readOne(ctx context.Context, id string) (*commit, error) {
	name := recordName(id)
	data, err := c.b.Get(ctx, name)
	if errors.Is(err, bucket.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, cause := c.parseCompiled(name, data)
	if cause != nil && errors.Is(cause, model.ErrCorrupt) {
		r, err = c.spare(ctx, id)
		if errors.Is(err, bucket.ErrNotFound) || errors.Is(err, model.ErrCorrupt) {
			return nil, fmt.Errorf("%w; it has no intact copy, and without it the catalogue is not reliable: see docs/operations.md, Damaged objects in the bucket", cause)
		}
		if err != nil {
			return nil, err
		}
	} else if cause != nil {
		return nil, cause
	}
	c.mu.Lock()
	was := c.damaged[id]
	if cause != nil {
		c.damaged[id] = true
	} else {
		delete(c.damaged, id)
	}
	c.mu.Unlock()
	if cause != nil && !was {
		c.log.Error("a commit record is damaged; its copy is used instead", "record", name, "err", cause, "remedy", remedy)
	}
	return r, nil
}
