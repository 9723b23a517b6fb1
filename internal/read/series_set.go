package read

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/heap"
	"github.com/shaledb/shale/internal/model"
)

// SeriesSet walks the series of a request in key order, every key once. It is used by one goroutine.
type SeriesSet struct {
	req     *model.Request
	cursors []model.Cursor        // all of them, for Close
	heap    heap.Heap[cursorItem] // those that stand on a later series
	group   []model.Cursor        // those that stand on the current series, by ascending Order
	metrics *metrics

	started bool
	closed  bool
	key     model.Key
	labels  model.Labels
	merge   rowMerge
	charged int64 // bytes, for the current series
	err     error
}

func newSeriesSet(req *model.Request, cursors []model.Cursor, m *metrics) *SeriesSet {
	s := &SeriesSet{req: req, cursors: cursors, metrics: m}
	s.merge.family = req.Family
	return s
}

// seriesBytes is about what a series costs its reader beside its labels and rows: headers of slices and objects.
const seriesBytes = 200

// Next moves to the next series. It returns false at the end or on an error.
func (s *SeriesSet) Next(ctx context.Context) bool {
	if s.err != nil || s.closed {
		return false
	}
	if err := ctx.Err(); err != nil {
		return s.fail(err)
	}
	if !s.advance(ctx) || s.heap.Len() == 0 {
		return false
	}
	s.key = s.heap.First().key
	for s.heap.Len() > 0 && s.heap.First().key == s.key {
		s.group = append(s.group, s.heap.Pop().cursor)
	}
	if len(s.group) > 1 {
		slices.SortFunc(s.group, func(a, b model.Cursor) int { return cmp.Compare(a.Order(), b.Order()) })
	}
	if s.chooseLabels(); s.labels == nil && !s.req.Unlabelled {
		return s.fail(fmt.Errorf("%w: series %s: no source has its labels", model.ErrCorrupt, s.key))
	}
	bytes := int64(seriesBytes)
	if !s.req.LabelsCharged {
		bytes += int64(len(s.labels))
	}
	if err := s.req.Quota.TakeSeries(1, bytes); err != nil {
		return s.fail(err)
	}
	s.charged = bytes
	s.req.Cost.Series.Add(1)
	return true
}

// advance moves the cursors of the last series on and puts them back into the heap.
func (s *SeriesSet) advance(ctx context.Context) bool {
	moving := s.group
	if !s.started {
		s.started, moving = true, s.cursors
	}
	for _, c := range moving {
		switch {
		case c.Next(ctx):
			s.heap.Push(cursorItem{c.Key(), c})
		case c.Err() != nil:
			return s.fail(c.Err())
		}
	}
	s.group = s.group[:0]
	return true
}

// chooseLabels takes the first labels that any cursor has, and counts those that differ.
func (s *SeriesSet) chooseLabels() {
	s.labels = nil
	for _, c := range s.group {
		l := c.Labels()
		switch {
		case len(l) == 0:
		case s.labels == nil:
			s.labels = l
		case !bytes.Equal(s.labels, l):
			s.metrics.collisions.Inc()
		}
	}
}

// Key returns the key of the current series.
func (s *SeriesSet) Key() model.Key { return s.key }

// Labels returns the labels of the current series, which may be nil if the request wants none. They are valid until Next.
func (s *SeriesSet) Labels() model.Labels { return s.labels }

// AppendRows appends the rows of the current series and the request's family to dst: ascending in time, samples unique
// in time, other rows once for each time and value. It may be called once a series. After an error the set is at its
// end.
func (s *SeriesSet) AppendRows(ctx context.Context, dst *model.Rows) error {
	if s.err != nil {
		return s.err
	}
	s.merge.begin(dst)
	for _, c := range s.group {
		if err := s.appendCursor(ctx, c, dst); err != nil {
			s.fail(err)
			return s.err
		}
		s.merge.endRun(dst)
	}
	appended, bytes := s.merge.appended(dst), besidesFloats(dst)
	s.merge.finish(dst)
	kept := s.merge.appended(dst)
	s.req.Cost.Samples.Add(int64(kept))
	if back := 16*int64(appended-kept) + bytes - besidesFloats(dst); back != 0 {
		s.charged -= back
		return s.req.Quota.TakeBytes(-back)
	}
	return nil
}

// Charged returns the bytes of memory that the current series was charged, which a caller that does not keep it gives back. It does
// not know of rows that were forgotten.
func (s *SeriesSet) Charged() int64 { return s.charged }

// appendCursor appends the rows of one cursor and charges them.
func (s *SeriesSet) appendCursor(ctx context.Context, c model.Cursor, dst *model.Rows) error {
	rows, bytes := dst.Len(), besidesFloats(dst)
	if err := c.AppendRows(ctx, dst); err != nil {
		return fmt.Errorf("series %s: %w", s.key, err)
	}
	if len(dst.Bytes) > math.MaxUint32 {
		// A reference to a blob has 32 bits for its offset.
		return fmt.Errorf("%w: series %s: its histograms take more than 4 GiB; shorten the range", model.ErrLimit, s.key)
	}
	n := int64(dst.Len() - rows)
	if err := s.req.Quota.TakeSamples(n); err != nil {
		return err
	}
	s.charged += 16 * n
	if more := besidesFloats(dst) - bytes; more > 0 {
		if err := s.req.Quota.TakeBytes(more); err != nil {
			return err
		}
		s.charged += more
	}
	return nil
}

// Forget gives back what the first n of rows, which AppendRows has appended, were charged, and does not count them. It is
// for a caller that asks for more rows than it hands on.
func (s *SeriesSet) Forget(rows *model.Rows, n int) error {
	bytes := 0
	for i := range n {
		if rows.Kind(i) != model.KindFloat {
			bytes += len(rows.Blob(i))
		}
		if len(rows.Starts) > 0 {
			bytes += 8
		}
		if len(rows.Kinds) > 0 {
			bytes++
		}
	}
	s.req.Cost.Samples.Add(-int64(n))
	if err := s.req.Quota.TakeSamples(-int64(n)); err != nil {
		return err
	}
	return s.req.Quota.TakeBytes(-int64(bytes))
}

// besidesFloats returns the bytes that rows take beside the 16 for each that TakeSamples charges.
func besidesFloats(r *model.Rows) int64 { return int64(len(r.Bytes) + 8*len(r.Starts) + len(r.Kinds)) }

// Err returns the error that ended the walk.
func (s *SeriesSet) Err() error { return s.err }

// Close gives up what the set pins. It may be called more than once.
func (s *SeriesSet) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return closeAll(s.cursors)
}

func (s *SeriesSet) fail(err error) bool {
	s.err = errors.Join(s.err, err)
	s.heap.Reset()
	s.group = nil
	return false
}
