package logql

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/selection"
)

// thinned returns entries that are at least the interval apart: the first of all, then the first of those
// that are far enough from it, and so on. Which one comes next depends on the one before, so that the range
// after it is asked again where what was fetched does not reach that far.
func thinned(ctx context.Context, x *selection.Execution, q *Query, left model.TimeRange) ([]found, error) {
	var out []found
	limit := q.Limit
	for left.Min <= left.Max && (q.Limit == 0 || len(out) < q.Limit) {
		t := newTop(q.Direction, limit, x.Quota, nil)
		if err := x.Scan(ctx, left, t); err != nil {
			return nil, err
		}
		batch := t.take()
		for i := range batch {
			f := &batch[i]
			if !left.Contains(f.time) || q.Limit > 0 && len(out) == q.Limit {
				if err := x.Quota.TakeBytes(-int64(len(f.bytes)) - foundBytes); err != nil {
					return nil, err
				}
				continue
			}
			out = append(out, *f)
			left = beyond(left, f.time, q.Interval, q.Direction)
		}
		if limit == 0 || len(batch) < limit {
			break
		}
	}
	return out, nil
}

// beyond returns what of a range is at least the interval farther than a time.
func beyond(r model.TimeRange, at, interval int64, d Direction) model.TimeRange {
	none := model.TimeRange{Min: 1, Max: 0}
	if d == Backward {
		if at < math.MinInt64+interval {
			return none
		}
		r.Max = min(r.Max, at-interval)
		return r
	}
	if at > math.MaxInt64-interval {
		return none
	}
	r.Min = max(r.Min, at+interval)
	return r
}
