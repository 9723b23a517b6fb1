package transform

import (
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// buckets aggregates values in buckets of an interval from start to end, and returns the end of the last one.
func buckets(s *series.Series, f series.Aggregation, interval, start, end int64) ([]float64, int64) {
	points := min(int((s.End-s.Start+s.Step-1)/s.Step), len(s.Values))
	time := func(i int) int64 { return s.Start + int64(i)*s.Step }
	var out []float64
	i := 0
	for ; start < end; start += interval {
		first, present := i, 0
		for i < points && time(i) < start+interval {
			if time(i) <= start {
				first = i
			}
			if time(i) >= start && !series.IsNull(s.Values[i]) {
				present++
			}
			i++
		}
		v := series.Null()
		if series.Enough(present, float64(interval)/float64(s.Step), s.XFF) {
			v = f(s.Values[first:i])
		}
		out = append(out, v)
	}
	return out, start
}

// maxBuckets bounds the values that an interval makes of one series.
const maxBuckets = 1 << 24

// interval reads a positive interval.
func interval(c *function.Call, i int) (int64, error) {
	n, err := attime.ParseOffset(c.Text(i))
	if err != nil || n <= 0 {
		return 0, c.Errorf(`expected a positive interval such as "1h", found %q`, c.Text(i))
	}
	return n, nil
}

// charge takes the memory of the buckets of a series.
func charge(c *function.Call, s *series.Series, interval int64) error {
	n := (s.End-s.Start)/interval + 2
	if n > maxBuckets {
		return fmt.Errorf("%w: %s: an interval of %d s makes %d values of one series, more than %d", model.ErrInvalid, c.Function.Name, interval, n, maxBuckets)
	}
	return c.Charge(c, n)
}

func summarize(c *function.Call) (any, error) {
	n, err := interval(c, 1)
	if err != nil {
		return nil, err
	}
	name := c.Text(2)
	f, err := series.AggregationOf(name)
	if err != nil {
		return nil, err
	}
	return function.Each(func(c *function.Call, s *series.Series) (*series.Series, error) {
		if err := charge(c, s, n); err != nil {
			return nil, err
		}
		start, end, suffix := s.Start-floorMod(s.Start, n), s.End-floorMod(s.End, n)+n, ")"
		if c.Flag(3) {
			start, end, suffix = s.Start, s.End, ", true)"
		}
		out, alignedEnd := buckets(s, f, n, start, end)
		if c.Flag(3) {
			end = alignedEnd
		}
		s.Tags["summarize"], s.Tags["summarizeFunction"] = c.Text(1), name
		d := s.Derive(`summarize(`+s.Name+`, "`+c.Text(1)+`", "`+name+`"`+suffix, out)
		d.Start, d.End, d.Step = start, end, n
		return d, nil
	})(c)
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

// smartSummarize can move the start of the window back to the start of a unit of time.
func smartSummarize(c *function.Call) (any, error) {
	list := c.List(0)
	if align, ok := c.Value(3).(string); ok && align != "True" && align != "False" {
		unit, err := attime.ParseUnit(align)
		if err != nil {
			return nil, c.Errorf("%w", err)
		}
		weekday := int64(1)
		if last := align[len(align)-1]; last >= '0' && last <= '9' {
			weekday = int64(last - '0')
		}
		if list, err = c.Again(c, alignDown(c, unit, weekday), c.Until); err != nil {
			return nil, err
		}
	}
	n, err := interval(c, 1)
	if err != nil {
		return nil, err
	}
	name := c.Text(2)
	f, err := series.AggregationOf(name)
	if err != nil {
		return nil, err
	}
	out := make(series.List, 0, len(list))
	for _, s := range list {
		if err := charge(c, s, n); err != nil {
			return nil, err
		}
		values, end := buckets(s, f, n, s.Start, s.End)
		s.Tags["smartSummarize"], s.Tags["smartSummarizeFunction"] = c.Text(1), name
		d := s.Derive(`smartSummarize(`+s.Name+`, "`+c.Text(1)+`", "`+name+`")`, values)
		d.End, d.Step = end, n
		out = append(out, d)
	}
	return out, nil
}

// alignDown returns the start of the unit of time that the window begins in, in the zone of the request. A
// week begins on the given day, where 1 is Monday.
func alignDown(c *function.Call, unit attime.Unit, weekday int64) int64 {
	_, offset := time.Unix(c.From, 0).In(c.Now.Location()).Zone()
	at := time.Unix(c.From+int64(offset), 0).UTC()
	year, month, day := at.Date()
	switch unit {
	case attime.Years:
		month, day = 1, 1
	case attime.Months:
		day = 1
	case attime.Weeks:
		iso := int64(at.Weekday()+6)%7 + 1
		day -= int(floorMod(iso-weekday, 7))
	}
	hour, minute, second := 0, 0, 0
	switch unit {
	case attime.Seconds:
		hour, minute, second = at.Clock()
	case attime.Minutes:
		hour, minute, _ = at.Clock()
	case attime.Hours:
		hour = at.Hour()
	}
	return time.Date(year, month, day, hour, minute, second, 0, time.UTC).Unix() - int64(offset)
}

// hitcount adds up values times seconds in buckets that end at the end of the series. A value that lies in
// several buckets is divided among them.
func hitcount(c *function.Call) (any, error) {
	list, aligned, suffix := c.List(0), c.Flag(2), ")"
	n, err := interval(c, 1)
	if err != nil {
		return nil, err
	}
	if aligned {
		unit := attime.Seconds
		for u, least := range []int64{attime.Seconds: 0, attime.Minutes: 60, attime.Hours: 3600, attime.Days: 86400} {
			if n >= least {
				unit = attime.Unit(u)
			}
		}
		suffix = ", true)"
		from := c.From
		if unit != attime.Seconds {
			from = alignDown(c, unit, 1)
		}
		if list, err = c.Again(c, from, c.Until); err != nil {
			return nil, err
		}
		for _, s := range list {
			s.End = s.Start + (s.End-s.Start)/n*n + n
		}
	}
	out := make(series.List, 0, len(list))
	for _, s := range list {
		if err := charge(c, s, n); err != nil {
			return nil, err
		}
		if err := c.Check(len(s.Values)); err != nil {
			return nil, err
		}
		count := (s.End - s.Start + n - 1) / n
		start := s.End - count*n
		s.Tags["hitcount"] = c.Text(1)
		d := s.Derive(`hitcount(`+s.Name+`, "`+c.Text(1)+`"`+suffix, hits(s, n, count, start))
		d.Start, d.Step = start, n
		out = append(out, d)
	}
	return out, nil
}

func hits(s *series.Series, interval, count, start int64) []float64 {
	out := series.Nulls(int(count))
	add := func(bucket int64, v float64) {
		if bucket < 0 || bucket >= count {
			return
		}
		if series.IsNull(out[bucket]) {
			out[bucket] = 0
		}
		out[bucket] += v
	}
	for i, v := range s.Values {
		if series.IsNull(v) {
			continue
		}
		from := s.Start + int64(i)*s.Step - start
		first, firstMod := floorDiv(from, interval), floorMod(from, interval)
		last, lastMod := floorDiv(from+s.Step, interval), floorMod(from+s.Step, interval)
		if last >= count {
			last, lastMod = count-1, interval
		}
		if first == last {
			if first >= 0 {
				add(first, v*float64(lastMod-firstMod))
			}
			continue
		}
		if first >= 0 {
			add(first, v*float64(interval-firstMod))
		}
		for b := first + 1; b < last; b++ {
			add(b, v*float64(interval))
		}
		if lastMod > 0 {
			add(last, v*float64(lastMod))
		}
	}
	return out
}
