package values

import (
	"math"

	"github.com/shaledb/shale/internal/load/random"
)

// Histogram is the value of a sample of a histogram. Fill reuses its memory.
type Histogram struct {
	Schema        int32
	ZeroThreshold float64
	ZeroCount     uint64
	Count         uint64
	Sum           float64
	// Float says that all counts are to be divided by quarters, and sent as floats.
	Float              bool
	Gauge              bool
	Positive, Negative Buckets
	Custom             []float64 // upper bounds of schema -53
}

// Buckets are absolute counts with their positions.
type Buckets struct {
	Spans  []span
	Counts []uint64
}

type span struct {
	Offset int32
	Length uint32
}

// quarters makes floats out of counts, with fractions that are exact.
const quarters = 4

const customSchema = -53

// customBounds are the default bounds of a classic histogram in clients of Prometheus.
var customBounds = [...]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// schemas are the resolutions that series have.
var schemas = [...]int32{-2, 0, 1, 2, 3, 3, 5, 8}

// zeroThreshold is the default of clients: 2^-128.
var zeroThreshold = math.Ldexp(1, -128)

// growEvery is how many ticks pass until a value needs a new bucket, and maxGrowth how often that happens:
// stores must cope with changing layouts.
const (
	growEvery = 32
	maxGrowth = 4
)

// Fill makes the value of a sample. Layout and pace depend on the series; counts never fall, except in
// gauges.
func (n *Histogram) Fill(m ValueModel, gauge bool, at *Instant, series uint64) {
	shape := random.Draw(at.Seed^random.SaltShape, series, math.MaxUint64)
	n.Float, n.Gauge = m == HistogramFloat, gauge
	n.ZeroThreshold, n.ZeroCount, n.Custom = zeroThreshold, 0, nil
	n.Schema = schemas[shape>>8%uint64(len(schemas))]
	positive, negative := 4+int(shape>>16%9), 0
	if shape>>24%3 == 0 {
		negative = 2 + int(shape>>32%3)
	}
	grown := int(min(at.Tick/growEvery, maxGrowth))
	if m == HistogramCustom {
		// Its buckets begin at the first bound, and the last one may be beyond the last bound.
		n.Schema, n.ZeroThreshold, n.Custom = customSchema, 0, customBounds[:]
		negative, positive = 0, min(positive, len(customBounds)+1-2-maxGrowth)
		n.Positive.lay(int32(shape>>40%2), positive+grown)
	} else {
		n.ZeroCount = n.counted(at, series, 63)
		n.Positive.lay(int32(shape>>40%16)-8, positive+grown)
	}
	n.Negative.lay(int32(shape>>48%8)-4, negative)
	n.Count = n.ZeroCount + n.draw(&n.Positive, at, series, 0) + n.draw(&n.Negative, at, series, 32)
	n.Sum = float64(n.Count*7+random.Draw(at.Seed^random.SaltShape, series, at.Tick<<6|62)%1000) / 1000
}

// lay places the buckets: all in one span if they are few, else with a gap of one bucket before the last
// ones.
func (b *Buckets) lay(offset int32, n int) {
	b.Spans, b.Counts = b.Spans[:0], b.Counts[:0]
	const inFirst = 3
	switch {
	case n == 0:
	case n <= inFirst:
		b.Spans = append(b.Spans, span{offset, uint32(n)})
	default:
		b.Spans = append(b.Spans, span{offset, inFirst}, span{1, uint32(n - inFirst)})
	}
	for range n {
		b.Counts = append(b.Counts, 0)
	}
}

// draw fills in the counts, whose numbers begin at first, and returns their sum.
func (n *Histogram) draw(b *Buckets, at *Instant, series, first uint64) (sum uint64) {
	for i := range b.Counts {
		b.Counts[i] = n.counted(at, series, first+uint64(i))
		sum += b.Counts[i]
	}
	return sum
}

// counted returns the count of one bucket, which is never 0. A bucket is a number below 62.
func (n *Histogram) counted(at *Instant, series, bucket uint64) uint64 {
	drawn := random.Draw(at.Seed^random.SaltShape, series, at.Tick<<6|bucket)
	if n.Gauge {
		return 1 + drawn%1000
	}
	pace := 1 + (series*31+bucket*17)%50
	return 1 + at.Tick*pace + drawn%pace
}

// Value returns a count as it is sent if the histogram is one of floats.
func (n *Histogram) Value(count uint64) float64 { return float64(count) / quarters }

// Classic returns the counts of the buckets below each bound and, last, above all of them.
func (n *Histogram) Classic() (counts [len(customBounds) + 1]uint64) {
	if len(n.Custom) == 0 {
		return counts
	}
	index, i := 0, 0
	for _, s := range n.Positive.Spans {
		index += int(s.Offset)
		for range s.Length {
			counts[index] = n.Positive.Counts[i]
			index, i = index+1, i+1
		}
	}
	return counts
}
