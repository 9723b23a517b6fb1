package part

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// addText reads all lines of a series and returns their windows.
func (t *tally) addText(ctx context.Context, text Text, w Windows) (windows uint64, err error) {
	if text == nil {
		return 0, nil
	}
	if t.seen == nil {
		t.seen = make(map[string]struct{})
	}
	clear(t.seen)
	last := int64(math.MinInt64)
	run := text.Run(ctx, model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64})
	for run.Next() {
		rows, err := run.Piece().Rows(ctx)
		if err != nil {
			return 0, err
		}
		for i, at := range rows.Times {
			if at < last {
				return 0, corrupt("text of time %d after %d", at, last)
			}
			if at > last {
				clear(t.seen)
				last = at
			}
			row := string(rows.MetadataAt(i)) + "\x00" + string(rows.Line(i))
			if _, twice := t.seen[row]; twice {
				return 0, corrupt("a line of time %d stands twice", at)
			}
			t.seen[row] = struct{}{}
			t.textBytes += uint64(len(rows.Line(i)))
		}
		t.text += uint64(len(rows.Times))
		t.times.Min, t.times.Max = min(t.times.Min, rows.Times[0]), max(t.times.Max, last)
		if w.Count > 0 {
			windows |= w.of(rows.Times)
		}
	}
	return windows, run.Err()
}
