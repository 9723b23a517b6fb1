package victorialogs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/rfc3339"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
)

// countLines counts the lines of an account in windows. The sum is of hashes of the text, the stream and the
// time of each line together, so that the stream or the time of one cannot be that of another. Each is below
// 2^22, so that a sum of fewer than a billion is exact in a floating-point number, in whatever order the
// server adds.
func (c *client) countLines(ctx context.Context, a Account, r model.TimeRange, sums bool, each func(w, lines int64, sum float64)) error {
	f := filter{}
	text := f.in(r)
	if sums {
		text += " | hash(_msg) h | hash(_stream_id) s | hash(_time) t | math (((h % 1000003) * 31 + (s % 1000003) * 17) * (t % 1000003 + 1)) % 4194301 as x | stats by (_time:5m) count() n, sum(x) x"
	} else {
		text += " | stats by (_time:5m) count() n"
	}
	return c.try(ctx, c.counts, access{Account: a}, kindCounts, text, func(row []field) error {
		at, ok := rfc3339.Parse(valueOf(row, "_time"))
		lines, err := strconv.ParseInt(string(valueOf(row, "n")), 10, 64)
		var sum float64
		if sums && err == nil {
			sum, err = strconv.ParseFloat(string(valueOf(row, "x")), 64)
		}
		if !ok || err != nil || floorMod(at, watch.Window) != 0 {
			return fmt.Errorf("%w: VictoriaLogs at %s has sent a count that is not one: %s", model.ErrCorrupt, c.url, rowText(row))
		}
		each(at/watch.Window, lines, sum)
		return nil
	})
}

// countTimes counts the lines of an account in windows, and the different times of those of each stream.
func (c *client) countTimes(ctx context.Context, a Account, r model.TimeRange, each func(w, lines, times int64)) error {
	f := filter{}
	text := f.in(r) + " | stats by (_stream_id, _time:5m) count() n, count_uniq(_time) times | stats by (_time) sum(n) n, sum(times) times"
	return c.try(ctx, c.proofs, access{Account: a}, kindCopies, text, func(row []field) error {
		at, ok := rfc3339.Parse(valueOf(row, "_time"))
		lines, err := strconv.ParseInt(string(valueOf(row, "n")), 10, 64)
		times, err2 := strconv.ParseInt(string(valueOf(row, "times")), 10, 64)
		if !ok || err != nil || err2 != nil || floorMod(at, watch.Window) != 0 {
			return fmt.Errorf("%w: VictoriaLogs at %s has sent a count that is not one: %s", model.ErrCorrupt, c.url, rowText(row))
		}
		each(at/watch.Window, lines, times)
		return nil
	})
}
