package logql

import (
	"context"
	"errors"
	"fmt"
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

	streams    []stream // of the slice at hand
	labelBytes []byte   // what is left of the memory that their labels share
	stats      counters
}

// stream is a stream of the selection.
type stream struct {
	tenant int32
	labels model.Labels
}

// counters count while a query runs.
type counters struct {
	lines, bytes, kept, duplicates atomic.Int64
	pagesRead, selections          int64
	series                         int64 // of the selection that had most
}

const (
	// About what a stream, and a chunk with its piece and its part of a page, cost while a selection is worked on.
	streamPlanBytes = 48
	chunkPlanBytes  = 200
	// seriesCharge is what package read charges for a series beside its labels. It is given back with each slice, as a series
	// may lie in many of them.
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
	l := newLayout(x.mergeBytes)
	var charged, series, seriesBytes int64
	defer func() {
		// Giving back does not fail.
		_ = x.quota.TakeBytes(-charged)
		_ = x.quota.TakeSeries(-series, -seriesBytes)
		for _, s := range sets {
			err = errors.Join(err, s.Close())
		}
	}()
	x.streams, x.labelBytes = nil, nil
	x.stats.selections++
	for i := range x.requests {
		req := x.requests[i]
		req.Range = r
		set, err := x.selectText(ctx, &req)
		if err != nil {
			return err
		}
		sets = append(sets, set)
		before := len(x.streams)
		if err := x.layOut(ctx, l, set, x.tenants[i], &charged); err != nil {
			return err
		}
		series += int64(len(x.streams) - before)
	}
	for i := range x.streams {
		seriesBytes += int64(len(x.streams[i].labels)) + seriesCharge
	}
	if x.stats.series > 0 { // a series is counted once, however many slices it lies in
		x.cost.Series.Add(-min(series, x.stats.series))
	}
	x.stats.series = max(x.stats.series, series)
	l.order(x.direction)
	return x.scanAll(ctx, l)
}

// layOut takes the streams and chunks of a set.
func (x *execution) layOut(ctx context.Context, l *layout, set textSet, tenant int32, charged *int64) error {
	var chunks []model.TextChunk
	for set.Next(ctx) {
		var err error
		if chunks, err = set.Chunks(ctx, chunks[:0]); err != nil {
			return err
		}
		before := len(l.chunks)
		l.addStream(int32(len(x.streams)), chunks, set.Range())
		cost := int64(len(set.Labels())) + streamPlanBytes + chunkPlanBytes*int64(len(l.chunks)-before)
		if err := x.quota.TakeBytes(cost); err != nil {
			return err
		}
		*charged += cost
		if len(l.pieces) > maxPieces {
			return fmt.Errorf("%w: the query selects more than %d stretches of lines; narrow its selectors or its range", model.ErrLimit, maxPieces)
		}
		x.streams = append(x.streams, stream{tenant, x.keepLabels(set.Labels())})
	}
	return set.Err()
}

// maxPieces keeps numbers of pieces and chunks within their 32 bits.
const maxPieces = 1 << 28

// keepLabels copies labels into memory that they share.
func (x *execution) keepLabels(l model.Labels) model.Labels {
	if cap(x.labelBytes)-len(x.labelBytes) < len(l) {
		x.labelBytes = make([]byte, 0, max(len(l), min(64<<10, 2*cap(x.labelBytes)+1<<10)))
	}
	from := len(x.labelBytes)
	x.labelBytes = append(x.labelBytes, l...)
	return model.Labels(x.labelBytes[from:len(x.labelBytes):len(x.labelBytes)])
}
