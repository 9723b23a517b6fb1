package verify

import (
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/load/values"
)

// bucket is one bucket of a histogram, with the bits of its count as it was sent: an integer or a float.
type bucket struct {
	index int64
	count uint64
}

// differentHistogram describes how a histogram that was read back differs from the one that was sent; empty
// if it does not. All numbers are compared bit for bit. Empty buckets and other spans have the same meaning,
// so a store may add them.
func differentHistogram(n *values.Histogram, h *prompb.Histogram) string {
	_, float := h.Count.(*prompb.Histogram_CountFloat)
	if float != n.Float {
		return fmt.Sprintf("counts are floats: %v", float)
	}
	count, zero := h.GetCountInt(), h.GetZeroCountInt()
	if float {
		count, zero = math.Float64bits(h.GetCountFloat()), math.Float64bits(h.GetZeroCountFloat())
	}
	// Apart from the gauge hint, hints compare a sample with the previous one, so the store may change them.
	gauge := h.ResetHint == prompb.Histogram_GAUGE
	switch {
	case h.Schema != n.Schema:
		return fmt.Sprintf("schema %d, want %d", h.Schema, n.Schema)
	case count != sentBits(n, n.Count), zero != sentBits(n, n.ZeroCount):
		return fmt.Sprintf("count %x, zero count %x, want %x and %x", count, zero, sentBits(n, n.Count), sentBits(n, n.ZeroCount))
	case math.Float64bits(h.Sum) != math.Float64bits(n.Sum):
		return fmt.Sprintf("sum %v, want %v", h.Sum, n.Sum)
	case math.Float64bits(h.ZeroThreshold) != math.Float64bits(n.ZeroThreshold):
		return fmt.Sprintf("zero threshold %v, want %v", h.ZeroThreshold, n.ZeroThreshold)
	case gauge != n.Gauge:
		return fmt.Sprintf("is a gauge: %v", gauge)
	case !slices.Equal(h.CustomValues, n.Custom):
		return fmt.Sprintf("bounds %v, want %v", h.CustomValues, n.Custom)
	}
	positive, err := bucketsOf(h.PositiveSpans, h.PositiveDeltas, h.PositiveCounts, float)
	if want := sentBuckets(n, &n.Positive); err != nil || !slices.Equal(positive, want) {
		return fmt.Sprintf("positive buckets %v, want %v: %v", positive, want, err)
	}
	negative, err := bucketsOf(h.NegativeSpans, h.NegativeDeltas, h.NegativeCounts, float)
	if want := sentBuckets(n, &n.Negative); err != nil || !slices.Equal(negative, want) {
		return fmt.Sprintf("negative buckets %v, want %v: %v", negative, want, err)
	}
	return ""
}

// sentBits returns the bits of a count as it is sent.
func sentBits(n *values.Histogram, count uint64) uint64 {
	if n.Float {
		return math.Float64bits(n.Value(count))
	}
	return count
}

// sentBuckets returns the buckets as they are sent.
func sentBuckets(n *values.Histogram, b *values.Buckets) []bucket {
	var out []bucket
	index, i := int64(0), 0
	for _, s := range b.Spans {
		index += int64(s.Offset)
		for range s.Length {
			out = append(out, bucket{index, sentBits(n, b.Counts[i])})
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
		return out, fmt.Errorf("spans of %d buckets, but %d differences and %d counts", i, len(deltas), len(counts))
	}
	return out, nil
}
