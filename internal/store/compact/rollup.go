package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
	"github.com/shaledb/shale/internal/store/retention"
)

// Rollups say how rows are summed up in slots of time.
type Rollups struct {
	// ID names the rules: two with one ID make the same rollups of the same rows.
	ID string
	// Makes says that they make rollups of any series. Others only say how long older rollups are kept.
	Makes bool
	// Of returns the lengths of the slots of a series in seconds, each of which divides a day, and what appends
	// the rows of the slots of one length to dst. An error means that the rules cannot tell.
	Of func(l model.Labels) (steps []int64, roll func(step int64, rows, dst *model.Rows), err error)
	// Keep returns how long slots of a length in seconds are kept; 0: those that are kept longest.
	Keep func(step int64) time.Duration
}

// rollups returns the rules of now, or nil.
func (c *Compactor) rollups() *Rollups {
	if c.o.Rollups == nil {
		return nil
	}
	r := c.o.Rollups()
	if r != nil {
		c.waiting.use(r)
	}
	return r
}

// maxSteps bounds the lengths of slots in one block, each of which has a writer of its own.
const maxSteps = 16

// becauseRollup is the reason of the making of rollups.
const becauseRollup = "rollup"

// unrolled reports whether it is known that nothing is to be summed up of a block.
func (c *Compactor) unrolled(s *catalog.State, block, rules string) bool {
	return s.Unrolled[catalog.UnrolledBlock{Block: block, Policies: rules}]
}

// rollAll makes the rollups that are missing, a block at a time, hides those that count no more, and drops
// deleted rows of those that are alone. It follows the merges of a run, so that it seldom works for blocks
// that are about to be merged.
func (c *Compactor) rollAll(ctx context.Context, res *Result) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	rules := c.rollups()
	if s := c.o.Catalog.State(); (rules == nil || !rules.Makes) && len(s.Rollups)+len(s.Dead) == 0 {
		return nil
	}
	if c.o.Plain && rules != nil && rules.Makes {
		c.plain.Do(func() {
			c.o.Logger.Warn("schemas have archives, but no rollups are made below journal-version 4; until then, even expired points stay in the bucket")
		})
	}
	tried := make(map[string]bool)
	var errs []error
	for ; res.Merges < c.o.MaxMerges; res.Merges++ {
		var step func() error
		err := model.Caught(func() error { step = c.nextRoll(ctx, rules, tried); return nil })
		if step != nil {
			err = step()
		}
		if errors.Is(err, catalog.ErrReplaced) {
			c.metrics.raced.Inc()
		} else if err != nil {
			errs = append(errs, c.failed(err))
		}
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		if step == nil {
			break
		}
	}
	waiting := 0
	if s := c.o.Catalog.State(); rules != nil && rules.Makes {
		have := rolledBy(s.Rollups, rules.ID)
		for i := range s.Blocks {
			if b := &s.Blocks[i]; c.rolls(b) && !have[b.ID] && !c.unrolled(&s, b.ID, rules.ID) {
				waiting++
			}
		}
	}
	c.metrics.unrolled.Set(float64(waiting))
	return errors.Join(errs...)
}

// rolledBy returns the blocks that have rollups made by some rules.
func rolledBy(rollups []catalog.Block, rules string) map[string]bool {
	have := make(map[string]bool, len(rollups))
	for i := range rollups {
		if r := &rollups[i]; !r.Alone && r.Policies == rules {
			have[r.Base] = true
		}
	}
	return have
}

// rolls reports whether rollups are made of a block at this time.
func (c *Compactor) rolls(b *catalog.Block) bool {
	over := dayOf(c.o.Now() - int64(c.o.Grace))
	return b.Signal == model.Metrics && b.Level == catalog.Settled && b.Samples > 0 && b.Range.Max < over
}

// nextRoll returns the next step, or nil.
func (c *Compactor) nextRoll(ctx context.Context, rules *Rollups, tried map[string]bool) func() error {
	s := c.o.Catalog.State()
	if dead := untried(s.Dead, tried); len(dead) > 0 {
		return func() error { return c.o.Catalog.AddRollups(ctx, "", dead, nil) }
	}
	for i := range s.Rollups {
		if b := &s.Rollups[i]; b.Alone && !tried[b.ID] {
			if due := s.Deletions.Due(b, c.o.Now()); len(due) > 0 {
				tried[b.ID] = true
				return func() error { return c.rewriteAlone(ctx, b, due) }
			}
		}
	}
	if rules == nil || !rules.Makes || c.o.Plain {
		return nil
	}
	have := rolledBy(s.Rollups, rules.ID)
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if have[b.ID] || !c.rolls(b) || !c.mayMerge(b, tried) || c.unrolled(&s, b.ID, rules.ID) {
			continue
		}
		// A merge or a rewriting will follow; until then, the rows are read.
		if slices.ContainsFunc(s.Deletions, func(d *catalog.Deletion) bool { return d.Concerns(b) }) ||
			slices.ContainsFunc(s.Blocks, func(x catalog.Block) bool { return x.ID != b.ID && b.SharesDay(&x) }) || meetsAlone(s.Rollups, b) {
			continue
		}
		tried[b.ID] = true
		var old []string
		for _, r := range s.Rollups {
			if r.Base == b.ID {
				old = append(old, r.ID)
			}
		}
		return func() error { return c.rollUp(ctx, rules, b, old) }
	}
	return nil
}

// meetsAlone reports whether a block may have rows of slots whose other rows are gone. Such rows stay as they
// are, as long as the longest rollups: a reader adds them to the rollups.
func meetsAlone(rollups []catalog.Block, b *catalog.Block) bool {
	return slices.ContainsFunc(rollups, func(r catalog.Block) bool { return r.Alone && b.SharesDay(&r) })
}

// untried returns up to maxReplaced ids of blocks that were not tried yet, and notes them.
func untried(blocks []catalog.Block, tried map[string]bool) (ids []string) {
	for i := range blocks {
		if id := blocks[i].ID; !tried[id] && len(ids) < maxReplaced {
			tried[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// rollUp makes the rollups of a block and commits them in the place of older ones.
func (c *Compactor) rollUp(ctx context.Context, rules *Rollups, b *catalog.Block, old []string) error {
	none := false
	err := c.writeRollups(ctx, b, b.ID, rules.ID, func(w *rollupWriter, s *part.Series) error {
		steps, roll, err := rules.Of(s.Labels)
		if err != nil {
			return fmt.Errorf("%w: tenant %q: series %s: %v", model.ErrTransient, s.Tenant, s.Key, err)
		}
		for _, step := range steps {
			if w.rows.Reset(); s.Rows.Samples.Len() > 0 {
				roll(step, &s.Rows.Samples, &w.rows.Samples)
			}
			if err := w.add(step, s); err != nil {
				return err
			}
		}
		return nil
	}, func(made []catalog.Block) error {
		none = len(made) == 0
		return c.o.Catalog.AddRollups(ctx, b.ID, old, made)
	})
	if err != nil {
		return fmt.Errorf("make rollups of block %s: %w", b.ID, err)
	}
	if none { // the catalogue may lack rollups for another reason by now
		return c.o.Catalog.MarkUnrolled(ctx, []catalog.UnrolledBlock{{Block: b.ID, Policies: rules.ID}})
	}
	return nil
}

// rewriteAlone drops the deleted rows of a block of rollups whose base is gone.
func (c *Compactor) rewriteAlone(ctx context.Context, b *catalog.Block, due catalog.Deletions) error {
	step := b.Resolution / int64(time.Second)
	rewritten := *b
	for _, d := range due {
		rewritten.Generation = max(rewritten.Generation, d.Generation)
	}
	err := c.writeRollups(ctx, &rewritten, b.Base, b.Policies, func(w *rollupWriter, s *part.Series) error {
		w.rows.Reset()
		w.rows.Append(s.Rows)
		due.Applying(b, s.Tenant).Cuts(s.Labels).Widened(b.Resolution).Rows(&w.rows.Samples, 0)
		return w.add(step, s)
	}, func(made []catalog.Block) error { return c.o.Catalog.RewriteAlone(ctx, b.ID, made) })
	if err != nil {
		return fmt.Errorf("delete rows of the rollups %s: %w", b.ID, err)
	}
	return nil
}

// rollupWriter writes a block for each length of slots.
type rollupWriter struct {
	m     *merge
	out   *cellOutput
	steps map[int64]*blockWriter
	rows  model.SeriesRows // of the current series and step
}

// add writes the rows of a series, if there are any.
func (w *rollupWriter) add(step int64, s *part.Series) (err error) {
	if w.rows.Len() == 0 {
		return nil
	}
	b := w.steps[step]
	if b == nil {
		if len(w.steps) == maxSteps {
			return fmt.Errorf("%w: series of one block have more than %d different steps", model.ErrLimit, maxSteps)
		}
		if b, err = w.m.create(w.out); err != nil {
			return err
		}
		b.step, w.steps[step] = step, b
	}
	w.m.c.metrics.rolled.WithLabelValues(retention.Text(time.Duration(step) * time.Second)).Add(float64(w.rows.Len()))
	if err := b.add(s.Tenant, s.Key, s.Labels, &w.rows); err != nil {
		return classed(err)
	}
	return nil
}

// writeRollups reads a block, writes and uploads what add makes of its series, and commits it.
func (c *Compactor) writeRollups(ctx context.Context, b *catalog.Block, base, rules string, add func(*rollupWriter, *part.Series) error, commit func([]catalog.Block) error) (err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, maxMergeTime)
	defer cancel()
	m, err := c.begin(ctx, &job{why: becauseRollup, inputs: []catalog.Block{*b}, cells: everything(catalog.Settled)}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.end()) }()
	// Rollups may be made once more of the same block, after a change of the rules and back.
	m.base, m.policies, m.generation, m.created = base, rules, b.Generation, c.o.Now()
	m.ids = []string{base, becauseRollup, rules, strconv.FormatInt(m.created, 10)}
	w := &rollupWriter{m: m, out: &cellOutput{cell: m.job.cells[0], group: b.Group}, steps: make(map[int64]*blockWriter)}
	release, err := c.o.Room(b.Bytes)
	if err != nil {
		return fmt.Errorf("%d bytes of temporary files: %w", b.Bytes, err)
	}
	defer release()
	if err := m.caught(func() error { return w.write(b, add) }); err != nil {
		return err
	}
	if took := time.Now().Round(0).Sub(began.Round(0)); took > maxMergeTime {
		return fmt.Errorf("%w: the making of rollups took %s, at most %s", model.ErrTransient, took, maxMergeTime)
	}
	if err := c.o.Catalog.Refresh(ctx); err != nil {
		return err
	}
	if err := commit(m.blocks); err != nil {
		return err
	}
	c.metrics.merges.WithLabelValues(becauseRollup).Inc()
	c.o.Logger.Debug("made rollups", "of", b.ID, "blocks", len(m.blocks), "after", time.Since(began).Round(time.Millisecond))
	return nil
}

// write writes and uploads what add makes of the series of a block.
func (w *rollupWriter) write(b *catalog.Block, add func(*rollupWriter, *part.Series) error) error {
	ctx, m := w.m.ctx, w.m
	r, err := m.reader(ctx, b, m.window(1))
	if err != nil {
		return err
	}
	m.reading = b.ID
	for s, err := range part.All(ctx, r.Stream()) {
		if err == nil {
			err = checkTimes(b.Range, s.Rows, s.Text)
		}
		if err != nil {
			return &inputError{b.ID, err}
		}
		m.reading = ""
		if err := add(w, s); err != nil {
			return err
		}
		m.reading = b.ID
	}
	m.reading = ""
	for _, step := range sortedSteps(w.steps) {
		if err := w.steps[step].finish(ctx); err != nil {
			return err
		}
	}
	return nil
}

func sortedSteps(all map[int64]*blockWriter) []int64 {
	steps := make([]int64, 0, len(all))
	for step := range all {
		steps = append(steps, step)
	}
	slices.Sort(steps)
	return steps
}

// rollupGrace is how long expired rows wait for their rollups, in which runs were made.
const rollupGrace = 7 * 24 * time.Hour

// Expired reports whether a block may be dropped: all of its rows have expired, as far as its record tells,
// and the rollups of it were made. It waits for them, and for a merge with rows that came late: until a whole
// run has begun a week after the last of these rows has expired, and after a whole run has first seen them.
// That nothing was made of them by then has a reason, such as a block that is damaged.
// Rollups that are alone have the time that their rules give them.
func (c *Compactor) Expired(r *retention.Rules, b *catalog.Block, now int64) bool {
	rules := c.rollups()
	if rules == nil || b.Signal != model.Metrics {
		return b.Resolution == 0 && Expired(r, b, now)
	}
	if b.Resolution == 0 && !Expired(r, b, now) {
		return false
	}
	s := c.o.Catalog.State()
	waits := c.waiting.counts(rules, &s, now)
	if alone := b.Resolution > 0; alone || meetsAlone(s.Rollups, b) {
		return (rules.Makes || !waits) && b.Newest() < retention.Before(now, rules.Keep(b.Resolution/int64(time.Second)))
	}
	if !waits {
		return true
	}
	over, shared := c.waiting.over(b.ID, now), false
	for i := range s.Blocks {
		if x := &s.Blocks[i]; x.ID != b.ID && b.SharesDay(x) {
			over, shared = over && c.waiting.over(x.ID, now), true
		}
	}
	if !shared && (c.unrolled(&s, b.ID, rules.ID) || rolledBy(s.Rollups, rules.ID)[b.ID]) {
		return true
	}
	whole, ok := c.waiting.lastWhole()
	return over && ok && Expired(r, b, min(now, whole)-int64(rollupGrace))
}
