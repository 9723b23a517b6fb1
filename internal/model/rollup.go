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
	spans := [1]HistogramSpan{{Length: 3}}
	values := [4]uint64{math.Float64bits(r.Min), math.Float64bits(r.Max), math.Float64bits(r.Last), math.Float64bits(r.Own)}
	if r.HasOwn {
		spans[0].Length = 4
	}
	return AppendHistogram(dst, &Histogram{
		Gauge: r.Given, Float: true, Schema: int32(rollupSchema + r.Step), Sum: math.Float64bits(r.Sum), Count: math.Float64bits(float64(r.Count)),
		PositiveSpans: spans[:], Positive: values[:spans[0].Length],
	})
}

// ParseRollup decodes the blob of a histogram if it is a rollup: all of its numbers have fixed places but the
// schema.
func ParseRollup(b []byte, r *Rollup) bool {
	if len(b) < 10 || b[0]&histogramFloat == 0 {
		return false
	}
	schema, n := binary.Varint(b[9:])
	if n <= 0 || schema <= rollupSchema || schema > math.MaxInt32 {
		return false
	}
	// After the schema come the zero threshold, count, zero count, spans, number of buckets, and buckets.
	p := b[9+n:]
	const head = 24 + 5
	if len(p) < head+3*8+2 {
		return false
	}
	length := int(p[26])
	spans := [5]byte{1, 0, byte(length), 0, byte(length)}
	if [5]byte(p[24:]) != spans || length != 3 && length != 4 || len(p) != head+8*length+2 {
		return false
	}
	number := func(at int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(p[at:])) }
	count := number(8)
	if !(count >= 0 && count <= 1<<32) {
		return false
	}
	r.Step, r.Count, r.Given, r.HasOwn, r.Own = schema-rollupSchema, int64(count), b[0]&histogramGauge != 0, length == 4, 0
	r.Sum = math.Float64frombits(binary.LittleEndian.Uint64(b[1:]))
	r.Min, r.Max, r.Last = number(head), number(head+8), number(head+16)
	if r.HasOwn {
		r.Own = number(head + 24)
	}
	return true
}

// RollupStep returns the length in seconds of the slot that row i is a rollup of, or 0 for other rows.
func (r *Rows) RollupStep(i int) int64 {
	if r.Kind(i) != KindHistogram {
		return 0
	}
	b := r.Blob(i)
	if len(b) < 10 || b[0]&histogramFloat == 0 {
		return 0
	}
	if schema, n := binary.Varint(b[9:]); n > 0 && schema > rollupSchema {
		return schema - rollupSchema
	}
	return 0
}
