package selection

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Counter is a sink that makes numbers of lines, and that runs the stages itself. It wants all lines: its
// limit is 0. Each worker of a scan has a part of it, so that no line takes a lock.
type Counter interface {
	Sink
	// NewWorker returns a part for one goroutine at a time. There are never more of them than goroutines that
	// use them at one time.
	NewWorker() Worker
}

// Worker is the part of a [Counter] that one goroutine uses.
type Worker interface {
	// Bind says what ends the work, and charges memory that stages take until the scan is over.
	Bind(ctx context.Context, charge func(bytes int64) error)
	// SetStream says that further rows are of a stream. The labels stay valid until it is called again.
	SetStream(tenant int32, labels model.Labels)
	// Skips reports whether no line of these times counts. Chunks of such times are not read.
	Skips(r model.TimeRange) bool
	// Chunk offers a chunk, none of which has been read, and reports whether it was taken: then none of it is
	// read. It is called only if the program counts whole lines and no filter leads the query.
	Chunk(c *model.TextChunk) (bool, error)
	// Want returns the columns of the stream that Rows and Picked need, besides times.
	Want() model.TextWant
	// NextChunk says that further calls of Rows and Picked are of another chunk.
	NextChunk()
	// Rows takes rows [from, to) of a chunk, and Picked some of its rows, both in ascending order, if the
	// program counts whole lines. Metadata may be in a list of rows of its own.
	Rows(rows, metadata *model.TextRows, from, to int) error
	Picked(rows, metadata *model.TextRows, picked []int32) error
	// Row takes one row of any chunk.
	Row(rows, metadata *model.TextRows, row int) error
	// Line runs the stages on a line, whose Result is not set, and reports whether it stays.
	Line(l *Line) (bool, error)
	// Splits reports whether SplitLine may decide lines of the stream.
	Splits() bool
	// SetPage says that SplitLine is about the lines of a page.
	SetPage(p *model.SplitText)
	// SplitLine is Line for a line of the page, of so many bytes, whose Text is not set. It returns false for
	// known if it needs the text, and then has done nothing.
	SplitLine(l *Line, line, bytes int) (ok, known bool, err error)
}

// worker returns a worker that no goroutine uses, or nil if lines are not counted.
func (x *Execution) worker(ctx context.Context, charge func(int64) error) Worker {
	if x.counter == nil {
		return nil
	}
	x.idleMu.Lock()
	defer x.idleMu.Unlock()
	var w Worker
	if n := len(x.idle); n > 0 {
		w, x.idle = x.idle[n-1], x.idle[:n-1]
	} else {
		w = x.counter.NewWorker()
	}
	w.Bind(ctx, charge)
	return w
}

// rest takes a worker back.
func (x *Execution) rest(w Worker) {
	x.idleMu.Lock()
	defer x.idleMu.Unlock()
	x.idle = append(x.idle, w)
}

// takeChunks hands the chunks of a stream that need not be read to the worker, and returns the others. Chunks
// that overlap another one, or the ends of the range, must be read.
func (x *Execution) takeChunks(w Worker, chunks []model.TextChunk, clip model.TimeRange) ([]model.TextChunk, error) {
	chunks = clipped(chunks, clip)
	kept := chunks[:0]
	for i := 0; i < len(chunks); {
		n := Overlapping(chunks[i:])
		if c := &chunks[i]; n == 1 && clip.Contains(c.Min) && clip.Contains(c.Max) {
			taken, err := w.Chunk(c)
			if err != nil {
				return nil, err
			}
			if taken {
				x.stats.kept.Add(int64(c.Rows))
				i++
				continue
			}
		}
		kept = append(kept, chunks[i:i+n]...)
		i += n
	}
	return kept, nil
}

// countAll hands the rows of the chunks of a piece to the worker. Chunks share rows only at times that they
// share, so that lines are read and merged only if there are such times.
func (s *scanner) countAll(ctx context.Context, chunks []chunk, bounds model.TimeRange) error {
	if len(chunks) > 1 {
		switch {
		case s.filter == nil && s.shareTimes(chunks):
			for i := range chunks {
				if err := s.read(ctx, &chunks[i], model.WantLines); err != nil {
					return err
				}
				chunks[i].clip(bounds)
			}
			return s.merge(ctx, chunks)
		case s.filter != nil:
			return s.merge(ctx, chunks)
		}
	}
	for i := range chunks {
		if err := s.count(ctx, &chunks[i]); err != nil {
			return err
		}
	}
	return nil
}

// shareTimes reports whether two of the chunks have a row of the same time.
func (s *scanner) shareTimes(chunks []chunk) bool {
	all := s.distinct[:0]
	for i := range chunks {
		r := &chunks[i]
		for k := r.lo; k < r.hi; k++ {
			if at := r.rows.Times[k]; k == r.lo || at != r.rows.Times[k-1] {
				all = append(all, at)
			}
		}
	}
	s.distinct = all
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			return true
		}
	}
	return false
}

// count hands the rows of a chunk that lie within its bounds to the worker, those that pass the filter.
func (s *scanner) count(ctx context.Context, r *chunk) error {
	s.setStream()
	s.worker.NextChunk()
	if s.filter == nil {
		s.wait.yields = false
		s.tally.kept += int64(r.hi - r.lo)
		return s.worker.Rows(&r.rows, &r.rows, r.lo, r.hi)
	}
	for r.lo < r.hi {
		if err := ctx.Err(); err != nil {
			return err
		}
		from, to := r.batch(Forward)
		r.passed = r.passed[:0]
		if err := s.match(ctx, r, from, to); err != nil {
			return err
		}
		if err := s.countPassed(ctx, r, r.passed); err != nil {
			return err
		}
		r.lo = to
	}
	return nil
}

// countPassed hands rows of a chunk that have passed the filter to the worker.
func (s *scanner) countPassed(ctx context.Context, r *chunk, passed []int32) error {
	if len(passed) == 0 {
		return nil
	}
	metadata, err := s.metadataToCount(ctx, r)
	if err != nil {
		return err
	}
	s.wait.yields = false
	s.tally.kept += int64(len(passed))
	return s.worker.Picked(&r.rows, metadata, passed)
}

// countRow hands a row of chunks that are merged to the worker.
func (s *scanner) countRow(ctx context.Context, r *chunk, row int) error {
	metadata, err := s.metadataToCount(ctx, r)
	if err != nil {
		return err
	}
	s.wait.yields = false
	s.tally.kept++
	return s.worker.Row(&r.rows, metadata, row)
}

// metadataToCount returns the rows of a chunk with their metadata, if the worker needs it.
func (s *scanner) metadataToCount(ctx context.Context, r *chunk) (*model.TextRows, error) {
	if s.worker.Want()&model.WantMetadata == 0 {
		return &r.rows, nil // which has none
	}
	if err := s.readMetadata(ctx, r); err != nil {
		return nil, err
	}
	return &r.metadata, nil
}
