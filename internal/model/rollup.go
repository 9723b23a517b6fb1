package model

import (
	"encoding/binary"
	"math"
)

// Rollup is the value of a row that stands for all points of a slot of time. In blocks it is stored as a
// histogram, so that each of its numbers is a column: see docs/format-bucket.md.
type Rollup struct {
	// Step is the length of the slot in seconds.
	Step int64
	// Count counts the points. They are those of the next finer archive of the series.
	Count int64
	// Sum, Min, Max and Last are of these points.
	Sum, Min, Max, Last float64
	// Own is the value by a method that does not follow from the others, if HasOwn.
	Own    float64
	HasOwn bool
	// Given says that the slot has the value Last, whatever its points are.
	Given bool
}

// rollupSchema is that of a slot of no length. The schemas of histograms are below 100.
const rollupSchema = 1 << 20

// RollupTime returns the time of the row of a slot: its last instant. Slots begin at a Unix second.
func RollupTime(slot, step int64) int64 { return (slot+step)*1e9 - 1 }

// AppendRollup appends the blob of a rollup, of kind histogram.
func AppendRollup(dst []byte, r *Rollup) []byte {
	return appendSlot(dst, rollupSchema+r.Step, r.Given, r.Count, r.Sum, [4]float64{r.Min, r.Max, r.Last, r.Own}, r.HasOwn)
}

// appendSlot appends the blob of a rollup or of a summary. It has the last bucket only if has says so.
func appendSlot(dst []byte, schema int64, gauge bool, count int64, sum float64, buckets [4]float64, has bool) []byte {
	spans := [1]HistogramSpan{{Length: 3}}
	if has {
		spans[0].Length = 4
	}
	var values [4]uint64
	for i, v := range buckets {
		values[i] = math.Float64bits(v)
	}
	return AppendHistogram(dst, &Histogram{
		Gauge: gauge, Float: true, Schema: int32(schema), Sum: math.Float64bits(sum), Count: math.Float64bits(float64(count)),
		PositiveSpans: spans[:], Positive: values[:spans[0].Length],
	})
}

// slotNumbers are the numbers of the blob of a rollup or of a summary: all have fixed places but the schema.
type slotNumbers struct {
	schema int64
	// buckets is 3 or 4.
	buckets int
	// b begins with the zero threshold.
	b []byte
}

const slotHead = 24 + 5

// readSlot finds the numbers of a blob, and reports whether it has the form of a rollup or of a summary.
func readSlot(b []byte) (s slotNumbers, ok bool) {
	if len(b) < 10 || b[0]&histogramFloat == 0 {
		return s, false
	}
	schema, n := binary.Varint(b[9:])
	if n <= 0 || schema > math.MaxInt32 || schema < math.MinInt32 {
		return s, false
	}
	// After the schema come the zero threshold, count, zero count, spans, number of buckets, and buckets.
	p := b[9+n:]
	if len(p) < slotHead+3*8+2 {
		return s, false
	}
	length := int(p[26])
	spans := [5]byte{1, 0, byte(length), 0, byte(length)}
	if [5]byte(p[24:]) != spans || length != 3 && length != 4 || len(p) != slotHead+8*length+2 {
		return s, false
	}
	return slotNumbers{schema, length, p}, true
}

func (s *slotNumbers) number(at int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(s.b[at:]))
}

func (s *slotNumbers) count() float64       { return s.number(8) }
func (s *slotNumbers) bucket(i int) float64 { return s.number(slotHead + 8*i) }

// ParseRollup decodes the blob of a histogram if it is a rollup.
func ParseRollup(b []byte, r *Rollup) bool {
	s, ok := readSlot(b)
	if !ok || s.schema <= rollupSchema {
		return false
	}
	count := s.count()
	if !(count >= 0 && count <= 1<<32) {
		return false
	}
	r.Step, r.Count, r.Given, r.HasOwn, r.Own = s.schema-rollupSchema, int64(count), b[0]&histogramGauge != 0, s.buckets == 4, 0
	r.Sum = math.Float64frombits(binary.LittleEndian.Uint64(b[1:]))
	r.Min, r.Max, r.Last = s.bucket(0), s.bucket(1), s.bucket(2)
	if r.HasOwn {
		r.Own = s.bucket(3)
	}
	return true
}

// RollupStep returns the length in seconds of the slot that row i is a rollup of, or 0 for other rows.
func (r *Rows) RollupStep(i int) int64 { return max(0, r.slotSchema(i)-rollupSchema) }

// SummaryStep returns the length in seconds of the slot that row i is a summary of, or 0 for other rows.
func (r *Rows) SummaryStep(i int) int64 { return max(0, -rollupSchema-r.slotSchema(i)) }

// slotSchema returns the schema of row i, or 0 if it cannot be that of a rollup or of a summary.
func (r *Rows) slotSchema(i int) int64 {
	if r.Kind(i) != KindHistogram {
		return 0
	}
	b := r.Blob(i)
	if len(b) < 10 || b[0]&histogramFloat == 0 {
		return 0
	}
	schema, n := binary.Varint(b[9:])
	if n <= 0 || schema > math.MaxInt32 || schema < math.MinInt32 {
		return 0
	}
	return schema
}

// Summary is the value of a row that sums up the points of a slot of time as PromQL counts them: floats
// without stale markers, of which the last in each millisecond counts. A [Rollup] of the same slot is about
// the points of an archive of Graphite, which may be fewer.
type Summary struct {
	// Step is the length of the slot in seconds.
	Step int64
	// First is the point in the first millisecond of the slot, if HasFirst. It is apart from the others: a
	// window that begins there does not have it, and one that ends there does.
	First    float64
	HasFirst bool
	// Count counts the other points.
	Count               int64
	Sum, Min, Max, Last float64
	// Others says that the slot has rows that are not floats, or that stand besides the summary.
	Others bool
}

// SummaryTime returns the time of the row of a slot. It differs from that of a rollup, and from those of
// slots of other lengths, since a series has one row for each time.
func SummaryTime(slot, step int64) int64 { return RollupTime(slot, step) - step }

// AppendSummary appends the blob of a summary, of kind histogram. The schema of a summary is the negative one
// of a rollup of the same step: what reads rollups passes over it.
func AppendSummary(dst []byte, s *Summary) []byte {
	return appendSlot(dst, -rollupSchema-s.Step, s.Others, s.Count, s.Sum, [4]float64{s.Min, s.Max, s.Last, s.First}, s.HasFirst)
}

// ParseSummary decodes the blob of a histogram if it is a summary.
func ParseSummary(b []byte, s *Summary) bool {
	n, ok := readSlot(b)
	if !ok || n.schema >= -rollupSchema {
		return false
	}
	count := n.count()
	if !(count >= 0 && count <= 1<<53) {
		return false
	}
	*s = Summary{
		Step: -rollupSchema - n.schema, Count: int64(count), Others: b[0]&histogramGauge != 0, HasFirst: n.buckets == 4,
		Sum: math.Float64frombits(binary.LittleEndian.Uint64(b[1:])), Min: n.bucket(0), Max: n.bucket(1), Last: n.bucket(2),
	}
	if s.HasFirst {
		s.First = n.bucket(3)
	}
	return true
}

// AppendSummaries appends to dst a summary of each slot that has rows. The rows ascend, and so do those of
// dst, of which some may be copies of them.
func AppendSummaries(step int64, rows, dst *Rows) {
	const milli = 1e6
	var now Summary
	var sum Adder
	var blob []byte
	length := step * 1e9
	slot, some := int64(math.MinInt64), false // the begin of the slot in nanoseconds
	copies, had := 0, dst.Len()
	finish := func() {
		if some {
			for ; copies < had && dst.Times[copies] < slot+length; copies++ {
				now.Others = now.Others || dst.Times[copies] >= slot && dst.Kind(copies) == KindFloat
			}
			now.Step, now.Sum = step, sum.Sum()
			blob = AppendSummary(blob[:0], &now)
			dst.AppendBlob(SummaryTime(slot/1e9, step), KindHistogram, blob, 0)
		}
		now, sum, some = Summary{}, Adder{}, false
	}
	for i, t := range rows.Times {
		if at := floorTo(t, length); at != slot || !some {
			finish()
			slot = at
		}
		if some = true; rows.Kind(i) != KindFloat {
			now.Others = true
			continue
		}
		again := i+1 < len(rows.Times) && rows.Kind(i+1) == KindFloat && floorTo(rows.Times[i+1], milli) == floorTo(t, milli)
		if again || rows.Values[i] == StaleNaN {
			continue
		}
		v := math.Float64frombits(rows.Values[i])
		if t < slot+milli {
			now.First, now.HasFirst = v, true
			continue
		}
		if now.Count++; now.Count == 1 {
			now.Min, now.Max = v, v
		}
		sum.Add(v)
		now.Min, now.Max, now.Last = Least(now.Min, v), Greatest(now.Max, v), v
	}
	finish()
}

// floorTo returns the last multiple of a unit that is not after t.
func floorTo(t, unit int64) int64 {
	rest := t % unit
	if rest < 0 {
		rest += unit
	}
	return t - rest
}

// Least returns the lesser of two numbers, the first of equal ones, and NaN only if both are NaN.
func Least(a, b float64) float64 {
	if b < a || math.IsNaN(a) {
		return b
	}
	return a
}

// Greatest returns the greater of two numbers, the first of equal ones, and NaN only if both are NaN.
func Greatest(a, b float64) float64 {
	if b > a || math.IsNaN(a) {
		return b
	}
	return a
}

// Adder adds numbers up, and separately what their sum loses by rounding (Kahan's summation as improved by
// Neumaier). The zero value is the sum of none.
type Adder struct {
	sum, lost float64
	some      bool
}

// Add adds a number.
func (a *Adder) Add(v float64) {
	if !a.some {
		a.sum, a.some = v, true
		return
	}
	t := a.sum + v
	switch {
	case math.IsInf(t, 0):
		a.lost = 0
	case math.Abs(a.sum) >= math.Abs(v):
		a.lost += (a.sum - t) + v
	default:
		a.lost += (v - t) + a.sum
	}
	a.sum = t
}

// Sum returns the sum.
func (a *Adder) Sum() float64 {
	if math.IsInf(a.sum, 0) {
		return a.sum
	}
	return a.sum + a.lost
}

// Mean returns the sum divided by a count.
func (a *Adder) Mean(count float64) float64 {
	if math.IsInf(a.sum, 0) {
		return a.sum
	}
	return a.sum/count + a.lost/count
}
