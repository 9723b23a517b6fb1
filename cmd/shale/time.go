package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/terminal/moment"
)

// localTime writes a time for people: where this process runs, to the millisecond.
func localTime(t time.Time) string { return moment.Text(t.Local().Truncate(time.Millisecond)) }

// unixText writes a time as the Prometheus API takes it.
func unixText(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}

// period holds the flags of a time range.
type period struct {
	Since config.Duration `default:"1h" placeholder:"TIME" help:"How far to look back without --start."`
	Start string          `placeholder:"TIME" help:"Start of the time range: a date, a local time, RFC 3339, Unix seconds, or relative such as -1h."`
	End   string          `placeholder:"TIME" help:"End of the time range, written like --start. Default: now."`
}

// bounds returns the time range. The end may be equal to the start.
func (r *period) bounds(now time.Time) (start, end time.Time, err error) {
	end = now
	if r.End != "" {
		if end, err = moment.Parse(r.End, now); err != nil {
			return start, end, fmt.Errorf("--end: %w", err)
		}
	}
	start = end.Add(-r.Since.Std())
	if r.Start != "" {
		if start, err = moment.Parse(r.Start, now); err != nil {
			return start, end, fmt.Errorf("--start: %w", err)
		}
	}
	if end.Before(start) {
		err = fmt.Errorf("--end (%s) is before --start (%s)", localTime(end), localTime(start))
	}
	return start, end, err
}
