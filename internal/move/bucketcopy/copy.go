package bucketcopy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"
	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// Copy copies one bucket to another, once. After an error a new Copy goes on where this one was.
type Copy struct {
	From, To bucket.Bucket
	// Concurrency is how many blocks are copied at one time. Each takes about 24 MiB of memory, and what the
	// target's client needs for an upload.
	Concurrency int

	copied, verified atomic.Int64
	seed             model.KeySeed
	target           *target
}

const (
	// fresh is how old the records of the source may be when the copy is complete. If copying the blocks took
	// longer, the records are read once more and the new blocks are copied.
	fresh = time.Minute
	// maxRounds bounds how often the records are read, for a source that changes faster than it can be copied.
	maxRounds = 20
)

// Report says what a copy did.
type Report struct {
	// Moment is when the records of the source were read: the copy shows the source as it was then.
	Moment time.Time `json:"point_in_time"`
	Rounds int       `json:"rounds"`
	// Blocks and Bytes were copied, Present were in the target already.
	Blocks  int   `json:"blocks_copied"`
	Bytes   int64 `json:"bytes_copied"`
	Present int   `json:"blocks_present"`
	// Verified counts the bytes that were read back from the target.
	Verified int64 `json:"bytes_verified"`
	Records  int   `json:"records_written"`
	// Removed counts blocks and records that the source does not have any more.
	Removed int     `json:"objects_removed"`
	Seconds float64 `json:"seconds"`
}

// Moved returns the bytes that were copied so far and those that were verified, for a display of progress.
func (c *Copy) Moved() int64 { return c.copied.Load() + c.verified.Load() }

// Run copies everything that the target lacks.
func (c *Copy) Run(ctx context.Context) (*Report, error) {
	begun := time.Now()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	r := &Report{}
	var records []catalog.Stored
	for {
		r.Rounds++
		r.Moment = time.Now()
		var err error
		if records, err = c.sourceRecords(ctx); err != nil {
			return nil, err
		}
		complete, err := c.copyBlocks(ctx, r, visible(records))
		if err != nil {
			return nil, err
		}
		if complete && (time.Since(r.Moment) < fresh || r.Rounds >= maxRounds) {
			break
		}
		if r.Rounds >= maxRounds {
			return nil, fmt.Errorf("%w: in each of %d rounds the source merged and deleted blocks before they were copied; raise --concurrency, or copy when the source is quiet", model.ErrTransient, r.Rounds)
		}
	}
	if err := c.publish(ctx, r, records); err != nil {
		return nil, err
	}
	r.Bytes, r.Verified, r.Seconds = c.copied.Load(), c.verified.Load(), time.Since(begun).Seconds()
	return r, nil
}

// prepare looks at both buckets and refuses what cannot be copied.
func (c *Copy) prepare(ctx context.Context) (err error) {
	if c.target != nil {
		return nil
	}
	if c.seed, err = catalog.Seed(ctx, c.From); errors.Is(err, bucket.ErrNotFound) {
		return fmt.Errorf("%w: the source has no seed, so it is not a bucket of Shale", model.ErrInvalid)
	} else if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if err := healthy(ctx, "source", c.From); err != nil {
		return err
	}
	c.target, err = openTarget(ctx, c.To, c.seed)
	return err
}

// healthy returns an error if a bucket has damage: a copy of it would pass the damage on, or lack rows.
func healthy(ctx context.Context, what string, b bucket.Bucket) error {
	s, err := catalog.ReadSurvey(ctx, b, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if len(s.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s wrong; look there by shale inspect catalogue, and repair it first: %w", what, english.Plural(len(s.Problems), "thing", ""), s.Problems[0])
}

// sourceRecords reads the records of the source, and refuses a target that has others.
func (c *Copy) sourceRecords(ctx context.Context) ([]catalog.Stored, error) {
	records, err := catalog.ReadStored(ctx, c.From)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return records, c.target.compare(ctx, c.From, records)
}

// visible returns the blocks that no record replaces: settled ones first, because they stay, and of these the
// largest first, so that no large one is left for the end.
func visible(records []catalog.Stored) []catalog.Block {
	hidden := map[string]bool{}
	for i := range records {
		for _, id := range records[i].Replaces {
			hidden[id] = true
		}
	}
	var live []catalog.Block
	for i := range records {
		for _, b := range records[i].Blocks {
			if !hidden[b.ID] {
				live = append(live, b)
			}
		}
	}
	slices.SortStableFunc(live, func(a, b catalog.Block) int {
		if a.Level != b.Level {
			return int(b.Level) - int(a.Level)
		}
		return int(min(max(b.Bytes-a.Bytes, -1), 1))
	})
	return live
}

// copyBlocks copies the blocks that the target lacks. It reports false if the source has deleted some of them
// meanwhile, because it has merged them.
func (c *Copy) copyBlocks(ctx context.Context, r *Report, live []catalog.Block) (complete bool, err error) {
	var gone atomic.Bool
	r.Present = 0
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, c.Concurrency))
	for i := range live {
		b := &live[i]
		present := c.target.sizes[b.ID] == b.Bytes
		if present {
			r.Present++
		}
		if c.target.isVerified(b.ID) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if !present {
			r.Blocks++
		}
		g.Go(func() error {
			err := c.copyBlock(ctx, b, present)
			if errors.Is(err, errSourceGone) {
				gone.Store(true)
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return false, err
	}
	return !gone.Load(), nil
}
