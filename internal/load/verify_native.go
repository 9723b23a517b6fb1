package load

import (
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/prompb"
)

// bucket is one bucket of a histogram, with the bits of its count as it was sent: an integer or a float.
type bucket struct {
	index int64
	count uint64
}

// differs says in what a histogram that was read back is not the one that was sent; empty if in nothing. All numbers
// are compared bit for bit. A store may write down empty buckets, and cut spans otherwise; they mean the same.
func (n *native) differs(h *prompb.Histogram) string {
	_, float := h.Count.(*prompb.Histogram_CountFloat)
	if float != n.float {
		return fmt.Sprintf("counts are floats: %v", float)
	}
	count, zero := h.GetCountInt(), h.GetZeroCountInt()
	if float {
		count, zero = math.Float64bits(h.GetCountFloat()), math.Float64bits(h.GetZeroCountFloat())
	}
	// Beside gauge or not, hints speak of the sample before, which is the store's matter.
	gauge := h.ResetHint == prompb.Histogram_GAUGE
	switch {
	case h.Schema != n.schema:
		return fmt.Sprintf("schema %d, want %d", h.Schema, n.schema)
	case count != n.bits(n.count), zero != n.bits(n.zeroCount):
		return fmt.Sprintf("count %x, zero count %x, want %x and %x", count, zero, n.bits(n.count), n.bits(n.zeroCount))
	case math.Float64bits(h.Sum) != math.Float64bits(n.sum):
		return fmt.Sprintf("sum %v, want %v", h.Sum, n.sum)
	case math.Float64bits(h.ZeroThreshold) != math.Float64bits(n.zeroThreshold):
		return fmt.Sprintf("zero threshold %v, want %v", h.ZeroThreshold, n.zeroThreshold)
	case gauge != n.gauge:
		return fmt.Sprintf("is a gauge: %v", gauge)
	case !slices.Equal(h.CustomValues, n.custom):
		return fmt.Sprintf("bounds %v, want %v", h.CustomValues, n.custom)
	}
	positive, err := bucketsOf(h.PositiveSpans, h.PositiveDeltas, h.PositiveCounts, float)
	if want := n.sent(&n.positive); err != nil || !slices.Equal(positive, want) {
		return fmt.Sprintf("positive buckets %v, want %v: %v", positive, want, err)
	}
	negative, err := bucketsOf(h.NegativeSpans, h.NegativeDeltas, h.NegativeCounts, float)
	if want := n.sent(&n.negative); err != nil || !slices.Equal(negative, want) {
		return fmt.Sprintf("negative buckets %v, want %v: %v", negative, want, err)
	}
	return ""
}

// bits returns a count as it is sent.
func (n *native) bits(count uint64) uint64 {
	if n.float {
		return math.Float64bits(n.value(count))
	}
	return count
}

// sent returns the buckets as they are sent.
func (n *native) sent(b *buckets) []bucket {
	var out []bucket
	index, i := int64(0), 0
	for _, s := range b.spans {
		index += int64(s.offset)
		for range s.length {
			out = append(out, bucket{index, n.bits(b.counts[i])})
			index, i = index+1, i+1
		}
	}
	return out
}

// bucketsOf returns the buckets that are not empty.
func bucketsOf(spans []prompb.BucketSpan, deltas []int64, counts []float64, float bool) ([]bucket, error) {
	var out []bucket
	index, i, count := int64(0), 0, int64(0)
	for _, s := range spans {
		index += int64(s.Offset)
		for range s.Length {
			b := bucket{index: index}
			switch {
			case float && i < len(counts):
				b.count = math.Float64bits(counts[i])
			case !float && i < len(deltas):
				count += deltas[i]
				b.count = uint64(count)
			default:
				return out, fmt.Errorf("spans of more than %d buckets", i)
			}
			if b.count != 0 {
				out = append(out, b)
			}
			index, i = index+1, i+1
		}
	}
	if float && i != len(counts) || !float && i != len(deltas) {
		return out, fmt.Errorf("spans of %d buckets, and %d differences, %d counts", i, len(deltas), len(counts))
	}
	return out, nil
}
