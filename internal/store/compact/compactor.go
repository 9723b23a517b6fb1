package compact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/retention"
)

// fileSuffix ends the names of temporary files.
const fileSuffix = ".merge"

// damagedFor is how long merges leave out a block that could not be read.
const damagedFor = 6 * time.Hour

// Compactor merges the blocks of a bucket. Its methods may be called by several goroutines.
type Compactor struct {
	o       Options
	metrics *metrics
	pace    *pacer

	stop  context.CancelFunc
	done  sync.WaitGroup
	awake chan struct{} // of capacity 1: asks for a run before its time

	waiting waiting
	plain   sync.Once // warns that no rollups are made

	// running is held during a run. It guards the fields below.
	running sync.Mutex
	files   int
	// whole says that this run did all that was due so far, see waiting.
	whole bool
	// settledIn holds the blocks that an earlier refresh of the catalogue has shown; only those are merged.
	settledIn map[string]bool
	// damaged maps a block that could not be read to the time of the failure.
	damaged map[string]int64
	// clean holds blocks in which no series satisfies a deletion, by generation and block.
	clean map[cleanBlock]bool
	// known are the deletions of the last view of the catalogue, and checked the generations up to which no
	// deletion hides any row of a block, which the catalogue is still to be told.
	known   catalog.Deletions
	checked map[string]uint64
	// keeps holds, of blocks that series of several ages share, the shortest time for which any is kept.
	// That is by the rules keepsOf.
	keeps   map[string]time.Duration
	keepsOf *retention.Rules
}

// New returns a Compactor that does not run yet. It deletes the files that an earlier process left in the
// folder. Errors are of class invalid for invalid options, and of class transient for those of the file
// system.
func New(o Options) (*Compactor, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if err := clearFolder(&o); err != nil {
		return nil, fmt.Errorf("compaction: %w: %s: %v", model.ErrTransient, o.Dir, err)
	}
	return &Compactor{
		o: o, awake: make(chan struct{}, 1), metrics: newMetrics(o.Registerer), pace: &pacer{rate: o.BytesPerSecond},
		settledIn: make(map[string]bool), damaged: make(map[string]int64), clean: make(map[cleanBlock]bool), checked: make(map[string]uint64),
		keeps: make(map[string]time.Duration), waiting: waiting{blocks: make(map[string]int64)},
	}, nil
}

func clearFolder(o *Options) error {
	if err := o.FS.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	names, err := o.FS.List(o.Dir)
	for _, name := range names {
		if !strings.HasSuffix(name, fileSuffix) {
			continue
		}
		if e := o.FS.Remove(o.FS.PathJoin(o.Dir, name)); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Start runs the compactor in a goroutine until Close.
func (c *Compactor) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.done.Go(func() {
		pprof.Do(ctx, pprof.Labels("shale", "compact"), func(ctx context.Context) { c.Run(ctx) })
	})
}

// Close stops the goroutine of Start, in the middle of a merge if need be, and waits for it.
func (c *Compactor) Close() {
	if c.stop != nil {
		c.stop()
	}
	c.done.Wait()
}

// Run calls RunOnce periodically until the context is done. It logs errors; the next run retries.
func (c *Compactor) Run(ctx context.Context) {
	tick := time.NewTicker(c.o.Interval)
	defer tick.Stop()
	for {
		if _, err := c.RunOnce(ctx); err != nil && ctx.Err() == nil {
			c.o.Logger.Error("compaction failed in part; the next run retries", "err", err)
		}
		select {
		case <-c.awake:
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Wake asks for a run before its time.
func (c *Compactor) Wake() {
	select {
	case c.awake <- struct{}{}:
	default:
	}
}

// Result counts what a run did.
type Result struct {
	Merges int
	// Backlog counts blocks that wait for a merge that is due.
	Backlog   int
	Collected catalog.Collected
}

// RunOnce does the merges that are due and then collects garbage. A failed merge does not stop merges of
// other inputs; the errors are joined.
func (c *Compactor) RunOnce(ctx context.Context) (Result, error) {
	c.running.Lock()
	defer c.running.Unlock()
	c.metrics.runs.Inc()
	ctx = model.WithCaller(ctx, model.Caller{Class: model.Compaction})
	var res Result
	began := c.o.Now()
	c.whole = true
	errs := []error{c.mergeAll(ctx, &res), c.rollAll(ctx, &res)}
	if ctx.Err() == nil {
		var err error
		if res.Collected, err = c.o.Catalog.Collect(ctx, c.o.Garbage); err != nil {
			c.metrics.failures.Inc()
			errs = append(errs, err)
		}
	}
	if c.whole && ctx.Err() == nil && res.Merges < c.o.MaxMerges {
		c.noteWhole(began)
	}
	err := errors.Join(errs...)
	if err == nil {
		c.metrics.last.Set(float64(c.o.Now()) / 1e9)
	}
	return res, err
}

func (c *Compactor) mergeAll(ctx context.Context, res *Result) error {
	if err := c.refresh(ctx); err != nil {
		return c.failed(err)
	}
	// tried holds the inputs of merges that have failed in this run.
	tried := make(map[string]bool)
	confirmed := false
	var errs []error
	for res.Merges < c.o.MaxMerges {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		blocks, deletions := c.o.Catalog.Snapshot()
		c.known = deletions
		var j *job
		var backlog int
		if err := model.Caught(func() error { j, backlog = c.next(blocks, tried); return nil }); err != nil {
			errs = append(errs, c.failed(err))
			break
		}
		if !confirmed && (j != nil || len(deletions) > 0) {
			if err := c.o.Catalog.Refresh(ctx); err != nil {
				return c.failed(err)
			}
			confirmed = true
			continue
		}
		if j == nil && len(deletions) > 0 {
			err := model.Caught(func() (err error) {
				j, err = c.nextDeletion(ctx, blocks, deletions, tried)
				return err
			})
			if err != nil {
				errs = append(errs, c.failed(err))
			}
		}
		if j == nil {
			err := model.Caught(func() (err error) {
				j, err = c.nextExpired(ctx, blocks, tried)
				return err
			})
			if err != nil {
				errs = append(errs, c.failed(err))
			}
		}
		res.Backlog = backlog
		c.metrics.backlog.Set(float64(backlog))
		if j == nil {
			break
		}
		if err := c.mergeOne(ctx, j, deletions); err != nil {
			for i := range j.inputs {
				tried[j.inputs[i].ID] = true
			}
			if errors.Is(err, catalog.ErrReplaced) {
				c.metrics.raced.Inc()
				continue
			}
			errs = append(errs, c.failed(err))
			continue
		}
		res.Merges++
	}
	if err := c.markClean(ctx); err != nil {
		errs = append(errs, c.failed(err))
	}
	return errors.Join(errs...)
}

// refresh reads the catalogue and notes its blocks: only these are merged. A run that has something to merge
// reads the catalogue once more before that, and blocks that the second reading shows count as present: so
// every block with a lower number than an input is known, see package catalog. Most runs have nothing to
// merge, and the second reading costs two listings.
func (c *Compactor) refresh(ctx context.Context) error {
	if err := c.o.Catalog.Refresh(ctx); err != nil {
		return err
	}
	blocks, _ := c.o.Catalog.Snapshot()
	clear(c.settledIn)
	for i := range blocks {
		c.settledIn[blocks[i].ID] = true
	}
	for id, since := range c.damaged {
		if !c.settledIn[id] || c.o.Now()-since > int64(damagedFor) || c.o.Now() < since {
			delete(c.damaged, id)
		}
	}
	for k := range c.clean {
		if !c.settledIn[k.block] {
			delete(c.clean, k)
		}
	}
	for id := range c.keeps {
		if !c.settledIn[id] {
			delete(c.keeps, id)
		}
	}
	c.metrics.damaged.Set(float64(len(c.damaged)))
	return nil
}

// mayMerge reports whether a block may be an input.
func (c *Compactor) mayMerge(b *catalog.Block, tried map[string]bool) bool {
	_, damaged := c.damaged[b.ID]
	return c.settledIn[b.ID] && !damaged && !tried[b.ID]
}

// next returns the next merge, or nil, and the number of blocks that wait for a due merge.
func (c *Compactor) next(blocks []catalog.Block, tried map[string]bool) (first *job, backlog int) {
	for _, live := range bySignal(blocks) {
		p := &planner{o: &c.o, now: c.o.Now(), live: live, deletions: c.known, rollups: live[0].Signal == model.Metrics && c.keepsRows(), may: func(b *catalog.Block) bool { return c.mayMerge(b, tried) }}
		j, n := p.next()
		if backlog += n; first == nil {
			first = j
		}
	}
	return first, backlog
}

func (c *Compactor) mergeOne(ctx context.Context, j *job, deletions catalog.Deletions) error {
	began := time.Now()
	c.o.Logger.Debug("merging blocks", "why", j.why, "blocks", len(j.inputs))
	made, err := c.run(ctx, j, deletions)
	c.metrics.seconds.Observe(time.Since(began).Seconds())
	if err != nil {
		return fmt.Errorf("merge %s (%s): %w", english.Plural(len(j.inputs), "block", ""), j.why, err)
	}
	c.metrics.merges.WithLabelValues(j.why).Inc()
	for _, b := range made {
		c.settledIn[b.ID] = true // as its inputs were
	}
	c.o.Logger.Info("merged blocks", "why", j.why, "in", len(j.inputs), "out", len(made), "after", time.Since(began).Round(time.Millisecond))
	return nil
}

// failed counts an error. It excludes a block that cannot be read from merges for a while.
func (c *Compactor) failed(err error) error {
	c.metrics.failures.Inc()
	if stack := model.StackOf(err); stack != "" {
		c.o.Logger.Error("a step of compaction panicked", "err", err, "stack", stack)
	}
	if id, ok := blamed(err); ok {
		c.damaged[id] = c.o.Now()
		c.metrics.damaged.Set(float64(len(c.damaged)))
		c.o.Logger.Error("a block cannot be read; merges leave it out for a while", "block", id, "err", err)
	} else if !errors.Is(err, model.ErrLimit) {
		c.whole = false
	}
	return err
}

func (c *Compactor) collided(tenant string, k model.Key, kept, dropped model.Labels) {
	c.metrics.collisions.Inc()
	c.o.Logger.Error("two label sets have the same key; the first one stays", "tenant", tenant, "key", k, "kept", kept, "dropped", dropped)
}
