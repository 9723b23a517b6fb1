package read

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// SeriesSet walks the series of a request in key order, every key once. It is used by one goroutine.
type SeriesSet struct {
	cursorMerge
	req     *model.Request
	cursors []model.Cursor

	rows    rowMerge
	charged int64 // bytes, for the current series
	// series and samples are what the set has counted towards the limits of the query.
	series, samples int64
}

func newSeriesSet(req *model.Request, cursors []model.Cursor, m *metrics) *SeriesSet {
	s := &SeriesSet{req: req, cursorMerge: cursorMerge{metrics: m}, cursors: cursors}
	for _, c := range cursors {
		s.walked = append(s.walked, c)
	}
	s.rows.family = req.Family
	return s
}

// seriesBytes estimates what a series costs its reader, apart from its labels and rows: headers of slices
// and objects.
const seriesBytes = 200

// Next moves to the next series. It returns false at the end or on an error.
func (s *SeriesSet) Next(ctx context.Context) bool {
	if !s.next(ctx) {
		return false
	}
	if len(s.group) > 1 { // rows of the highest order are appended last and win
		slices.SortFunc(s.group, func(a, b int) int { return cmp.Compare(s.cursors[a].Order(), s.cursors[b].Order()) })
	}
	if s.chooseLabels(); s.labels == nil && !s.req.Unlabelled {
		return s.fail(fmt.Errorf("%w: series %s: no source has its labels", model.ErrCorrupt, s.key))
	}
	bytes := int64(seriesBytes)
	if !s.req.LabelsCharged {
		bytes += int64(len(s.labels))
	}
	s.series++
	if err := s.req.Quota.TakeSeries(1, bytes); err != nil {
		return s.fail(err)
	}
	s.charged = bytes
	s.req.Cost.Series.Add(1)
	return true
}

// AppendRows appends the rows of the current series to dst: ascending in time, samples unique in time,
// other rows unique in time and value. It may be called once per series. An error ends the set.
func (s *SeriesSet) AppendRows(ctx context.Context, dst *model.Rows) error {
	if s.err != nil {
		return s.err
	}
	s.rows.begin(dst)
	for _, i := range s.group {
		if err := s.appendCursor(ctx, s.cursors[i], dst); err != nil {
			s.fail(err)
			return s.err
		}
		s.rows.endCursor(dst)
	}
	appended, bytes := s.rows.appended(dst), besidesFloats(dst)
	s.rows.finish(dst)
	kept := s.rows.appended(dst)
	s.req.Cost.Samples.Add(int64(kept))
	if back := 16*int64(appended-kept) + bytes - besidesFloats(dst); back != 0 {
		s.charged -= back
		return s.req.Quota.TakeBytes(-back)
	}
	return nil
}

// Charged returns the bytes charged for the current series. A caller that does not keep the series gives
// them back.
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
	s.samples += n
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

// Forget gives back the charge for the first n of the rows that AppendRows appended, and does not count
// them. It is for a caller that asks for more rows than it returns.
func (s *SeriesSet) Forget(rows *model.Rows, n int) error { return s.ForgetRows(rows, 0, n) }

// ForgetRows is Forget for the rows from one index up to another, without that one.
func (s *SeriesSet) ForgetRows(rows *model.Rows, from, to int) error {
	bytes, n := 0, to-from
	for i := from; i < to; i++ {
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
	s.charged -= 16*int64(n) + int64(bytes)
	s.req.Cost.Samples.Add(-int64(n))
	s.samples -= int64(n)
	if err := s.req.Quota.TakeSamples(-int64(n)); err != nil {
		return err
	}
	return s.req.Quota.TakeBytes(-int64(bytes))
}

// UncountSeries takes the series of a closed set out of what the query counts towards its limits, and returns
// their number: the caller reads them in another set, too. The cost stays, since they were read.
func (s *SeriesSet) UncountSeries() (n int64) {
	n, s.series = s.series, 0
	s.req.Quota.Uncount(n, 0)
	return n
}

// UncountSamples is UncountSeries for samples.
func (s *SeriesSet) UncountSamples() (n int64) {
	n, s.samples = s.samples, 0
	s.req.Quota.Uncount(0, n)
	return n
}

// besidesFloats returns the bytes of rows that TakeSamples does not charge: it charges 16 for each row.
func besidesFloats(r *model.Rows) int64 { return int64(len(r.Bytes) + 8*len(r.Starts) + len(r.Kinds)) }
