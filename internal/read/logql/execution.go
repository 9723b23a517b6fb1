package logql

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// textSet is what [read.TextSet] is.
type textSet interface {
	Next(ctx context.Context) bool
	Labels() model.Labels
	Chunks(ctx context.Context, dst []model.TextChunk) ([]model.TextChunk, error)
	Range() model.TimeRange
	Err() error
	Close() error
}

// execution runs one query for lines.
type execution struct {
	selectText func(ctx context.Context, req *model.Request) (textSet, error)
	requests   []model.Request // one a tenant
	tenants    []int32         // their numbers in the query
	direction  Direction
	program    *program
	workers    int
	now        int64
	filtered   bool // pages may be skipped
	mergeBytes int64
	idleBytes  int64 // 0: what the quota allows
	// seeds, if set, asks for the sums of entries.
	seeds *[2]maphash.Seed
	quota *model.Quota
	cost  *model.Cost
	top   *top

	// Of the portion at hand:
	base         int32 // the number of its first stream
	streams      []stream
	labelBytes   []byte // what is left of the memory that their labels share
	charged      int64
	portionBytes int64 // how many it may be
	stats        counters
}

// stream is a stream of the selection.
type stream struct {
	tenant int32
	labels model.Labels
}

// counters count while a query runs.
type counters struct {
	lines, bytes, metadata, kept, duplicates atomic.Int64

	pagesRead, selections int64
	series                int64 // of the selection that had most
}

const (
	// About what a stream, and a chunk with its piece and its part of a page, cost while a selection is worked on.
	streamPlanBytes = 48
	chunkPlanBytes  = 200
	// seriesCharge is what package read charges for a series beside its labels.
	seriesCharge = 200
)

// run walks the range in slices until no further one can change the answer.
func (x *execution) run(ctx context.Context, r model.TimeRange) error {
	for s := newTimeSlices(x.direction, r, x); ; {
		slice, ok := s.next()
		if !ok || x.top.full() {
			return nil
		}
		if err := x.slice(ctx, slice); err != nil {
			return err
		}
	}
}

// slice selects what lies in a range and scans it.
func (x *execution) slice(ctx context.Context, r model.TimeRange) (err error) {
	var sets []textSet
	series := int64(0)
	l := newLayout(x.mergeBytes)
	defer func() {
		x.forget()
		_ = x.quota.TakeSeries(-series, 0) // giving back does not fail
		for _, s := range sets {
			err = errors.Join(err, s.Close())
		}
	}()
	x.base = 0
	x.stats.selections++
	for i := range x.requests {
		req := x.requests[i]
		req.Range = r
		set, err := x.selectText(ctx, &req)
		if err != nil {
			return err
		}
		sets = append(sets, set)
		for more := true; more; {
			before := len(x.streams)
			more, err = x.layOut(ctx, l, set, x.tenants[i])
			series += int64(len(x.streams) - before)
			if err != nil {
				return err
			}
			if !more {
				break
			}
			if err := x.scanAll(ctx, l); err != nil {
				return err
			}
			x.base += int32(len(x.streams))
			x.forget()
			l = newLayout(x.mergeBytes)
		}
	}
	if x.stats.series > 0 { // a series is counted once, however many slices it lies in
		x.cost.Series.Add(-min(series, x.stats.series))
	}
	x.stats.series = max(x.stats.series, series)
	return x.scanAll(ctx, l)
}

// forget gives up the streams of a portion and what it was charged.
func (x *execution) forget() {
	_ = x.quota.TakeBytes(-x.charged) // giving back does not fail
	x.charged, x.streams, x.labelBytes = 0, nil, nil
}

// layOut takes streams and chunks of a set. It returns true where these are enough for one portion: however many streams there
// are, what is known of them at one time is bounded.
func (x *execution) layOut(ctx context.Context, l *layout, set textSet, tenant int32) (more bool, err error) {
	var chunks []model.TextChunk
	for set.Next(ctx) {
		if chunks, err = set.Chunks(ctx, chunks[:0]); err != nil {
			return false, err
		}
		before := len(l.chunks)
		l.addStream(int32(len(x.streams)), chunks, set.Range())
		x.streams = append(x.streams, stream{tenant, x.keepLabels(set.Labels())})
		// The set has charged the labels, and more, for whoever keeps them.
		labels := int64(len(set.Labels()))
		cost := labels + streamPlanBytes + chunkPlanBytes*int64(len(l.chunks)-before)
		if err := x.quota.TakeBytes(cost - labels - seriesCharge); err != nil {
			return false, err
		}
		if x.charged += cost; x.charged >= x.portionBytes || len(l.pieces) >= maxPieces {
			return true, nil
		}
	}
	return false, set.Err()
}

// maxPieces keeps numbers of pieces and chunks within their 32 bits.
const maxPieces = 1 << 26

// portionOf returns how many bytes of streams and chunks a query works on at one time.
func portionOf(q *model.Quota) int64 {
	if q.MaxBytes > 0 {
		return max(q.MaxBytes/8, 1)
	}
	return 64 << 20
}

// keepLabels copies labels into memory that they share.
func (x *execution) keepLabels(l model.Labels) model.Labels {
	if cap(x.labelBytes)-len(x.labelBytes) < len(l) {
		x.labelBytes = make([]byte, 0, max(len(l), min(64<<10, 2*cap(x.labelBytes)+1<<10)))
	}
	from := len(x.labelBytes)
	x.labelBytes = append(x.labelBytes, l...)
	return model.Labels(x.labelBytes[from:len(x.labelBytes):len(x.labelBytes)])
}
