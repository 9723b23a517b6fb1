package load

import "math"

// native is the value of a sample of a histogram. Its memory is used again.
type native struct {
	schema        int32
	zeroThreshold float64
	zeroCount     uint64
	count         uint64
	sum           float64
	// float says that all counts are to be divided by quarters, and sent as floats.
	float              bool
	gauge              bool
	positive, negative buckets
	custom             []float64 // upper bounds of schema -53
}

// buckets are absolute counts, and where they lie.
type buckets struct {
	spans  []span
	counts []uint64
}

type span struct {
	offset int32
	length uint32
}

// quarters makes floats out of counts, with fractions that are exact.
const quarters = 4

const customSchema = -53

// customBounds are those that clients of Prometheus give a classic histogram by default.
var customBounds = [...]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// schemas are the resolutions that series have.
var schemas = [...]int32{-2, 0, 1, 2, 3, 3, 5, 8}

// zeroThreshold is that of clients by default: 2^-128.
var zeroThreshold = math.Ldexp(1, -128)

// growEvery is how many ticks it takes until a histogram sees a value that needs a new bucket, and maxGrowth how often
// that happens: stores must cope with layouts that change.
const (
	growEvery = 32
	maxGrowth = 4
)

// fill makes the value of a sample. Layout and pace depend on the series; counts never fall, but for gauges.
func (n *native) fill(m ValueModel, gauge bool, at *instant, series uint64) {
	shape := draw(at.seed^saltShape, series, math.MaxUint64)
	n.float, n.gauge = m == HistogramFloat, gauge
	n.zeroThreshold, n.zeroCount, n.custom = zeroThreshold, 0, nil
	n.schema = schemas[shape>>8%uint64(len(schemas))]
	positive, negative := 4+int(shape>>16%9), 0
	if shape>>24%3 == 0 {
		negative = 2 + int(shape>>32%3)
	}
	grown := int(min(at.tick/growEvery, maxGrowth))
	if m == HistogramCustom {
		// Its buckets begin at the first bound, and the last one may lie beyond the last bound.
		n.schema, n.zeroThreshold, n.custom = customSchema, 0, customBounds[:]
		negative, positive = 0, min(positive, len(customBounds)+1-2-maxGrowth)
		n.positive.lay(int32(shape>>40%2), positive+grown)
	} else {
		n.zeroCount = n.counted(at, series, 63)
		n.positive.lay(int32(shape>>40%16)-8, positive+grown)
	}
	n.negative.lay(int32(shape>>48%8)-4, negative)
	n.count = n.zeroCount + n.draw(&n.positive, at, series, 0) + n.draw(&n.negative, at, series, 32)
	n.sum = float64(n.count*7+draw(at.seed^saltShape, series, at.tick<<6|62)%1000) / 1000
}

// lay places so many buckets: all in one stretch if they are few, else with a gap of one bucket before the last ones.
func (b *buckets) lay(offset int32, n int) {
	b.spans, b.counts = b.spans[:0], b.counts[:0]
	const inFirst = 3
	switch {
	case n == 0:
	case n <= inFirst:
		b.spans = append(b.spans, span{offset, uint32(n)})
	default:
		b.spans = append(b.spans, span{offset, inFirst}, span{1, uint32(n - inFirst)})
	}
	for range n {
		b.counts = append(b.counts, 0)
	}
}

// draw fills in the counts, whose numbers begin at first, and returns their sum.
func (n *native) draw(b *buckets, at *instant, series, first uint64) (sum uint64) {
	for i := range b.counts {
		b.counts[i] = n.counted(at, series, first+uint64(i))
		sum += b.counts[i]
	}
	return sum
}

// counted returns the count of one bucket, which is never 0. A bucket is a number below 62.
func (n *native) counted(at *instant, series, bucket uint64) uint64 {
	drawn := draw(at.seed^saltShape, series, at.tick<<6|bucket)
	if n.gauge {
		return 1 + drawn%1000
	}
	pace := 1 + (series*31+bucket*17)%50
	return 1 + at.tick*pace + drawn%pace
}

// value returns a count as it is sent if the histogram is one of floats.
func (n *native) value(count uint64) float64 { return float64(count) / quarters }
