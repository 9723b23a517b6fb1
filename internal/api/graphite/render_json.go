package graphite

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// points are values and their times, as JSON shows them.
type points struct {
	start, step int64
	values      []float64
}

// pointsOf consolidates a series to at most so many values that a graph of the whole range has max points;
// 0: all. The start moves so that buckets begin at the same times in every request. As in graphite-web, one
// value less is left out than the start moves by: a bucket has the values from one step before its time.
func pointsOf(s *series.Series, span, max int64) (points, error) {
	p := points{start: s.Start, step: s.Step, values: s.Values}
	n := int64(1)
	switch {
	case max == 1:
		n = int64(len(s.Values))
	case max > 0 && float64(max) < float64(span)/float64(s.Step):
		n = int64(math.Ceil(float64(span) / float64(s.Step) / float64(max)))
		width := n * s.Step
		nudge := width + floorMod(p.start, s.Step) - floorMod(p.start, width)
		p.start += nudge
		if lose := nudge/s.Step - 1; lose > 0 {
			p.values = p.values[min(lose, int64(len(p.values))):]
		}
	}
	if n > 1 {
		c := *s
		c.Values = p.values
		var err error
		if p.values, err = c.Consolidate(int(n), 0); err != nil {
			return p, err
		}
		p.step = n * s.Step
	}
	// The times end with the series, whatever the number of values.
	if times := (s.End-p.start)/p.step + 1; s.End < p.start {
		p.values = nil
	} else if times < int64(len(p.values)) {
		p.values = p.values[:times]
	}
	return p, nil
}

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// spanOf returns the length of the range of all series, and whether one of them has values.
func spanOf(list series.List) (span int64, some bool) {
	var start, end int64
	for i, s := range list {
		if i == 0 {
			start, end = s.Start, s.End
		}
		start, end = min(start, s.Start), max(end, s.End)
		some = some || len(s.Values) > 0
	}
	return end - start, some
}

func writeSeriesJSON(b *api.Body, r *rendering, list series.List) error {
	return withCallback(b, r, func() error {
		b.Raw("[")
		span, some := spanOf(list)
		if !some {
			list = nil
		}
		written := 0
		for _, s := range list {
			p, err := pointsOf(s, span, r.maxPoints)
			if err != nil {
				return err
			}
			if r.noNulls && !slices.ContainsFunc(p.values, func(v float64) bool { return !math.IsNaN(v) }) {
				continue
			}
			if written++; written > 1 {
				b.Raw(",")
			}
			if r.pretty {
				b.Raw("\n  ")
			}
			writePoints(b, s, p, r.noNulls)
		}
		if r.pretty && written > 0 {
			b.Raw("\n")
		}
		b.Raw("]")
		return nil
	})
}

// withCallback wraps a script in the call that jsonp asks for.
func withCallback(b *api.Body, r *rendering, write func() error) error {
	if r.jsonp == "" {
		return write()
	}
	b.Raw(r.jsonp + "(")
	if err := write(); err != nil {
		return err
	}
	b.Raw(")")
	return nil
}

func writePoints(b *api.Body, s *series.Series, p points, noNulls bool) {
	b.Raw(`{"target":`)
	b.Str(s.Name)
	b.Raw(`,"tags":{`)
	for i, tag := range slices.Sorted(maps.Keys(s.Tags)) {
		if i > 0 {
			b.Raw(",")
		}
		b.Str(tag)
		b.Raw(":")
		b.Str(s.Tags[tag])
	}
	b.Raw(`},"datapoints":[`)
	at, some := p.start, false
	for _, v := range p.values {
		if !noNulls || !math.IsNaN(v) {
			if some {
				b.Buf = append(b.Buf, ',')
			}
			some = true
			b.Buf = append(b.Buf, '[')
			b.Buf = appendNumber(b.Buf, v)
			b.Buf = append(b.Buf, ',')
			b.Buf = strconv.AppendInt(b.Buf, at, 10)
			b.Buf = append(b.Buf, ']')
			b.Spill()
		}
		at += p.step
	}
	b.Raw("]}")
	b.Spill()
}

// appendNumber appends a number in JSON. An infinity becomes a number that readers take for one.
func appendNumber(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "null"...)
	case math.IsInf(v, 1):
		return append(dst, "1e9999"...)
	case math.IsInf(v, -1):
		return append(dst, "-1e9999"...)
	}
	return series.AppendShortest(dst, v)
}
