package logql

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/patterns"
)

// mining reads the chosen chunks of a sample with several goroutines, which also cut the lines into words:
// most of the work. One goroutine mines the lines, always in the same order, because a pattern depends on the
// lines before it.
type mining struct {
	s      *patternSample
	within model.TimeRange
	// runs end at these indexes of the chosen chunks. The chunks of a run are those of one page, which is used
	// by one goroutine.
	runs  []int
	taken atomic.Int32      // runs
	cut   []chan minedChunk // one for each chunk
}

// minedChunk is the lines of a chunk, or why they cannot be read.
type minedChunk struct {
	batch *patterns.Batch
	// free takes the batch back.
	free chan<- *patterns.Batch
	err  error
}

// batchesAhead is how many chunks each goroutine may be ahead of the mining.
const batchesAhead = 4

// mine adds lines of the chosen chunks to the sample.
func (s *patternSample) mine(ctx context.Context, within model.TimeRange, workers int) (err error) {
	m := &mining{s: s, within: within}
	pages := m.divide()
	if s.query.Prepared.program.TextFilter == nil {
		read.PrefetchText(ctx, pages, model.WantLines|model.WantMetadata)
	}
	for range s.chosen {
		m.cut = append(m.cut, make(chan minedChunk, 1))
	}
	reading, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	failed := make(chan error, workers)
	var batches []*patterns.Batch
	for range min(workers, len(m.runs)) {
		free := make(chan *patterns.Batch, batchesAhead)
		for range batchesAhead {
			b := s.sample.NewBatch()
			batches = append(batches, b)
			free <- b
		}
		readers.Go(func() {
			ctx, done := model.Computing(reading)
			defer done()
			if err := model.Caught(func() error { m.read(ctx, free); return nil }); err != nil {
				failed <- err
			}
		})
	}
	own := model.ProcessorOf(ctx)
	defer func() {
		stop()
		own.Leave()
		readers.Wait()
		own.Enter(ctx)
		for _, b := range batches {
			b.Release()
		}
	}()
	for i := range s.chosen {
		var c minedChunk
		select {
		case c = <-m.cut[i]:
		default:
			own.Leave()
			select {
			case c = <-m.cut[i]:
			case c.err = <-failed:
			case <-ctx.Done():
				c.err = ctx.Err()
			}
			own.Enter(ctx)
		}
		if c.err != nil {
			return c.err
		}
		if err := s.sample.Add(c.batch); err != nil {
			return err
		}
		c.free <- c.batch
	}
	return nil
}

// divide brings the chunks of each page together, and returns the pages.
func (m *mining) divide() (pages []model.TextPage) {
	place := make(map[model.TextPage]int)
	for i := range m.s.chosen {
		p := m.s.chosen[i].Page
		if _, has := place[p]; !has {
			place[p] = len(pages)
			pages = append(pages, p)
		}
	}
	slices.SortStableFunc(m.s.chosen, func(a, b sampledChunk) int { return place[a.Page] - place[b.Page] })
	for i := range m.s.chosen {
		if i+1 == len(m.s.chosen) || m.s.chosen[i+1].Page != m.s.chosen[i].Page {
			m.runs = append(m.runs, i+1)
		}
	}
	return pages
}

// read cuts the lines of one run after another, into free batches. It waits only for batches that it has
// filled itself. So whoever reads the chunk that is mined next has one.
func (m *mining) read(ctx context.Context, free chan *patterns.Batch) {
	processor := model.ProcessorOf(ctx)
	stages := newPatternStages(ctx, m.s.query)
	var rows model.TextRows
	for n := int(m.taken.Add(1)); n <= len(m.runs); n = int(m.taken.Add(1)) {
		from := 0
		if n > 1 {
			from = m.runs[n-2]
		}
		page := m.s.chosen[from].Page
		for i := from; i < m.runs[n-1]; i++ {
			processor.Leave()
			var b *patterns.Batch
			select {
			case b = <-free:
			case <-ctx.Done():
				page.Release()
				return
			}
			processor.Enter(ctx)
			b.Reset()
			err := model.Caught(func() error { return m.chunk(ctx, &m.s.chosen[i], &rows, stages, b) })
			m.cut[i] <- minedChunk{b, free, err}
			if err != nil {
				page.Release()
				return
			}
		}
		page.Release()
	}
}

// chunk adds lines of a chunk to a batch.
func (m *mining) chunk(ctx context.Context, c *sampledChunk, rows *model.TextRows, stages *patternStages, b *patterns.Batch) error {
	if m.s.query.Prepared.program.TextFilter != nil {
		if skip, err := c.Page.Skip(ctx); err != nil || skip {
			return err
		}
	}
	rows.Reset()
	if err := c.Page.ReadText(ctx, c.Index, model.WantLines|model.WantMetadata, rows); err != nil {
		return err
	}
	return m.rows(c, rows, stages, b)
}

func (m *mining) rows(c *sampledChunk, rows *model.TextRows, stages *patternStages, b *patterns.Batch) error {
	from, _ := slices.BinarySearch(rows.Times, m.within.Min)
	to := from
	for to < len(rows.Times) && rows.Times[to] <= m.within.Max {
		to++
	}
	taken := min(to-from, sampledLines)
	if c.StandsFor > 0 {
		taken = to - from
	}
	if taken == 0 {
		return nil
	}
	lines := cmp.Or(c.StandsFor, float64(to-from)/float64(taken)*max(1, m.s.cut/c.lines))
	stages.setStream(c.labels)
	cost := m.s.query.Cost
	for n := range taken {
		i := from + n*(to-from)/taken
		text, metadata := rows.Line(i), rows.MetadataAt(i)
		cost.TextLines.Add(1)
		cost.TextBytes.Add(int64(len(text)))
		text, ok, err := stages.run(rows, i, text, metadata)
		if err != nil {
			return err
		}
		if !ok || rows.Times[i] < 0 {
			continue
		}
		if err := b.Add(text, metadata, rows.Times[i], lines); err != nil {
			return err
		}
	}
	return nil
}
