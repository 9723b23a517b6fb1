package selection

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

// Plan says what a query selects and what it does with the lines.
type Plan struct {
	Read *read.Querier
	// Requests are one per tenant. Their ranges are set for each slice, and their filters by FilterMetadata.
	Requests  []model.Request
	Tenants   []int32 // of each request, the number that its lines carry
	Direction Direction
	Program   *Program
	Workers   int   // that a scan begins with; more may follow
	Now       int64 // Unix nanoseconds
	Quota     *model.Quota
	Cost      *model.Cost
}

// Execution runs a plan. It is used by one goroutine, which starts and joins the workers.
type Execution struct {
	Plan
	// Bounds of memory, which New sets. Tests lower them.
	MergeBytes   int64 // lines of a piece of overlapping chunks
	IdleBytes    int64 // pages between two pieces that need them
	PortionBytes int64 // streams and chunks that are known at one time

	filtered bool // pages may be skipped
	sink     Sink // the collector or the counter, one of which is nil

	collector Collector
	counter   Counter

	// Of the current portion:
	base       int32 // how many pieces the earlier portions of its slice had
	streams    []stream
	labelBytes []byte // what is left of the memory that their labels share
	charged    int64
	stats      counters

	selected int64 // streams of the slice

	idleMu sync.Mutex
	idle   []Worker // of the counter
}

// New prepares the execution of a plan.
func New(p Plan) *Execution {
	p.Workers = min(p.Workers, maxWorkers)
	x := &Execution{
		Plan: p, MergeBytes: defaultMergeBytes, IdleBytes: idlePageBytes, PortionBytes: 64 << 20,
		filtered: p.Program.TextFilter != nil,
	}
	if limit := p.Quota.MaxBytes; limit > 0 {
		x.IdleBytes, x.PortionBytes = limit/8, max(limit/8, 1)
	}
	return x
}

// stream is a stream of the selection.
type stream struct {
	tenant int32
	labels model.Labels
}

// Figures are what an execution has counted.
type Figures struct {
	// Lines and Bytes are what the filters and stages have looked at, MetadataBytes the names and values of the
	// structured metadata of lines that passed the leading filters.
	Lines, Bytes, MetadataBytes int64
	// Passed counts lines that passed all stages, Duplicates those that were found in several places and count
	// once.
	Passed, Duplicates int64
	// PagesRead counts pages, and Selections slices of the range. Streams is the number of the slice that had
	// most.
	PagesRead, Selections, Streams int64
}

// Figures returns what was counted up to now. No scan may be running.
func (x *Execution) Figures() Figures {
	s := &x.stats
	return Figures{
		Lines: s.lines.Load(), Bytes: s.bytes.Load(), MetadataBytes: s.metadata.Load(),
		Passed: s.kept.Load(), Duplicates: s.duplicates.Load(),
		PagesRead: s.pagesRead, Selections: s.selections, Streams: s.series,
	}
}

// counters count while a query runs.
type counters struct {
	lines, bytes, metadata, kept, duplicates atomic.Int64

	pagesRead, selections int64
	series                int64 // of the selection that had most
}

const (
	// About what a stream, and a chunk with its piece and its part of a page, cost while a selection is worked
	// on.
	streamPlanBytes = 48
	chunkPlanBytes  = 200
	// seriesCharge is what package read charges for a series besides its labels.
	seriesCharge = 200
)

// Scan offers the lines of a range to a collector. It walks the range in slices until no further one can
// change the result.
func (x *Execution) Scan(ctx context.Context, r model.TimeRange, c Collector) error {
	x.sink, x.collector, x.counter = c, c, nil
	return x.slices(ctx, r)
}

// Count hands the lines of a range to the workers of a counter.
func (x *Execution) Count(ctx context.Context, r model.TimeRange, c Counter) error {
	x.sink, x.collector, x.counter, x.idle = c, nil, c, nil
	return x.slices(ctx, r)
}

func (x *Execution) slices(ctx context.Context, r model.TimeRange) error {
	found := x.stats.kept.Load()
	missing := int64(x.sink.Limit())
	s := newTimeSlices(x.Direction, r, x)
	for wanted := x.sink.Limit(); ; {
		future := s.future != 0
		ahead, err := x.newest(ctx, s, wanted)
		if err != nil {
			return err
		}
		switch {
		case ahead != nil:
			wanted = min(wanted, math.MaxInt32) * sliceGrowth
		case !future:
			wanted = 0 // the source is not asked again
		}
		slice, ok := s.next()
		if !ok || x.sink.Full() {
			return nil
		}
		err = x.slice(ctx, slice, ahead)
		if ahead != nil {
			ahead.Release()
		}
		if err != nil {
			return err
		}
		if now := x.stats.kept.Load(); x.Program.KeepsAll {
			missing -= now - found
			s.found(now-found, missing)
			found = now
		}
	}
}

// newest has a source find the newest lines of what is left, if the first of them are wanted: whatever they
// are, or those that pass a filter of which the source knows what lines must contain. The next slice then has
// them. It returns what the source knows of that slice.
func (x *Execution) newest(ctx context.Context, s *timeSlices, n int) (model.Ahead, error) {
	switch {
	case x.Direction != Backward || len(x.Requests) != 1 || s.left.Min > s.left.Max || s.future != 0 || n <= 0 || x.sink.Full():
		return nil, nil
	case x.Requests[0].TextFilter == nil && (x.filtered || s.width != int64(firstSliceOfAll) || s.isLast()):
		return nil, nil
	}
	req := x.Requests[0]
	req.Range = s.left
	near := s.left
	if !s.isLast() {
		near.Min = near.Max - s.width + 1
	}
	ahead, from, err := x.Read.Newest(ctx, &req, n, near)
	if ahead != nil {
		s.startAt(from)
	}
	return ahead, err
}

// slice selects what lies in a range and scans it. Ahead is what a source knows of it, or nil.
func (x *Execution) slice(ctx context.Context, r model.TimeRange, ahead model.Ahead) (err error) {
	var sets []*read.TextSet
	l := newLayout(x.MergeBytes)
	defer func() {
		x.forget()
		_ = x.Quota.TakeSeries(-x.selected, 0) // giving back does not fail
		for _, s := range sets {
			err = errors.Join(err, s.Close())
		}
	}()
	x.base, x.selected = 0, 0
	x.stats.selections++
	for i := range x.Requests {
		req := x.Requests[i]
		req.Range, req.Ahead = r, ahead
		set, err := x.Read.SelectText(ctx, &req)
		if err != nil {
			return err
		}
		sets = append(sets, set)
		for more := true; more; {
			more, err = x.layOut(ctx, l, set, x.Tenants[i])
			if err != nil {
				return err
			}
			if !more {
				break
			}
			if err := x.scanAll(ctx, l); err != nil {
				return err
			}
			x.base += int32(len(l.pieces))
			x.forget()
			l = newLayout(x.MergeBytes)
		}
	}
	if x.stats.series > 0 { // a series is counted once, however many slices it lies in
		x.Cost.Series.Add(-min(x.selected, x.stats.series))
	}
	x.stats.series = max(x.stats.series, x.selected)
	return x.scanAll(ctx, l)
}

// forget gives up the streams of a portion and what it was charged.
func (x *Execution) forget() {
	_ = x.Quota.TakeBytes(-x.charged) // giving back does not fail
	x.charged, x.streams, x.labelBytes = 0, nil, nil
}

// layOut takes streams and chunks of a set. It returns true where these are enough for one portion: however
// many streams there are, what is known of them at one time is bounded.
func (x *Execution) layOut(ctx context.Context, l *layout, set *read.TextSet, tenant int32) (more bool, err error) {
	var chunks []model.TextChunk
	w := x.worker(ctx, func(int64) error { return nil }) // it runs no stage here
	if w != nil {
		defer x.rest(w)
	}
	for set.Next(ctx) {
		x.selected++
		if chunks, err = set.Chunks(ctx, chunks[:0]); err != nil {
			return false, err
		}
		if w != nil {
			chunks = slices.DeleteFunc(chunks, func(c model.TextChunk) bool { return w.Skips(c.TimeRange) })
			if x.Program.Whole && x.Program.Filter == nil {
				w.SetStream(tenant, set.Labels())
				if chunks, err = x.takeChunks(w, chunks, set.Range()); err != nil {
					return false, err
				}
			}
			if len(chunks) == 0 {
				_ = x.Quota.TakeBytes(-int64(len(set.Labels())) - seriesCharge) // giving back does not fail
				continue
			}
		}
		before := len(l.chunks)
		l.addStream(int32(len(x.streams)), chunks, set.Range())
		x.streams = append(x.streams, stream{tenant, x.keepLabels(set.Labels())})
		// The set has charged the labels, and more, for whoever keeps them.
		labels := int64(len(set.Labels()))
		cost := labels + streamPlanBytes + chunkPlanBytes*int64(len(l.chunks)-before)
		if err := x.Quota.TakeBytes(cost - labels - seriesCharge); err != nil {
			return false, err
		}
		if x.charged += cost; x.charged >= x.PortionBytes || len(l.pieces) >= maxPieces {
			return true, nil
		}
	}
	return false, set.Err()
}

// maxPieces keeps numbers of pieces and chunks within their 32 bits.
const maxPieces = 1 << 26

// keepLabels copies labels into memory that they share.
func (x *Execution) keepLabels(l model.Labels) model.Labels {
	if cap(x.labelBytes)-len(x.labelBytes) < len(l) {
		x.labelBytes = make([]byte, 0, max(len(l), min(64<<10, 2*cap(x.labelBytes)+1<<10)))
	}
	from := len(x.labelBytes)
	x.labelBytes = append(x.labelBytes, l...)
	return model.Labels(x.labelBytes[from:len(x.labelBytes):len(x.labelBytes)])
}

// wants reports whether a line of that time can change the result.
func (x *Execution) wants(at int64) bool { return x.Direction.CompareTimes(at, x.sink.Bound()) <= 0 }
