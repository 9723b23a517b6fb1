package model

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Histogram is the decoded value of a row of KindHistogram: a native histogram of Prometheus. The only reset
// hint that it keeps is the gauge's: the others refer to the previous sample of the sender, not to the
// previous one stored. All floats are IEEE 754 bits.
type Histogram struct {
	Gauge bool
	// Float histograms have fractional counts: Count, ZeroCount, Positive and Negative hold floats, Positive
	// and Negative absolute ones. Otherwise Count and ZeroCount are integers, and Positive and Negative
	// differences of int64 to the bucket before.
	Float              bool
	Schema             int32
	ZeroThreshold, Sum uint64
	Count, ZeroCount   uint64
	PositiveSpans      []HistogramSpan
	NegativeSpans      []HistogramSpan
	Positive, Negative []uint64
	// Custom holds the upper bounds of the buckets of schema -53.
	Custom []uint64
}

// HistogramSpan is a sequence of consecutive buckets: the number of buckets skipped before it, and its
// length.
type HistogramSpan struct {
	Offset int32
	Length uint32
}

const (
	histogramGauge byte = 1
	histogramFloat byte = 2
)

// histogramIsStale reports whether the canonical bytes are those of a histogram that marks the end of its
// series.
func histogramIsStale(b []byte) bool {
	return len(b) >= 9 && binary.LittleEndian.Uint64(b[1:]) == StaleNaN
}

// Reset empties the histogram and keeps its memory.
func (h *Histogram) Reset() {
	*h = Histogram{
		PositiveSpans: h.PositiveSpans[:0], NegativeSpans: h.NegativeSpans[:0],
		Positive: h.Positive[:0], Negative: h.Negative[:0], Custom: h.Custom[:0],
	}
}

// MaxBytes returns the most bytes that AppendHistogram appends.
func (h *Histogram) MaxBytes() int {
	numbers := len(h.Positive) + len(h.Negative) + len(h.Custom)
	spans := len(h.PositiveSpans) + len(h.NegativeSpans)
	return 1 + 8 + 8 + binary.MaxVarintLen64*(3+5+numbers) + 2*binary.MaxVarintLen32*spans
}

// AppendHistogram appends the canonical bytes of a histogram, which docs/format.md describes: equal
// histograms have equal bytes.
func AppendHistogram(dst []byte, h *Histogram) []byte {
	flags := byte(0)
	if h.Gauge {
		flags |= histogramGauge
	}
	if h.Float {
		flags |= histogramFloat
	}
	dst = append(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, h.Sum)
	dst = binary.AppendVarint(dst, int64(h.Schema))
	dst = binary.LittleEndian.AppendUint64(dst, h.ZeroThreshold)
	dst = appendCount(dst, h.Float, h.Count)
	dst = appendCount(dst, h.Float, h.ZeroCount)
	dst = appendSpans(dst, h.PositiveSpans)
	dst = appendSpans(dst, h.NegativeSpans)
	dst = appendBuckets(dst, h.Float, h.Positive)
	dst = appendBuckets(dst, h.Float, h.Negative)
	return appendBuckets(dst, true, h.Custom)
}

func appendCount(dst []byte, float bool, v uint64) []byte {
	if float {
		return binary.LittleEndian.AppendUint64(dst, v)
	}
	return binary.AppendUvarint(dst, v)
}

func appendSpans(dst []byte, spans []HistogramSpan) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(spans)))
	for _, s := range spans {
		dst = binary.AppendVarint(dst, int64(s.Offset))
		dst = binary.AppendUvarint(dst, uint64(s.Length))
	}
	return dst
}

func appendBuckets(dst []byte, float bool, vs []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(vs)))
	for _, v := range vs {
		if float {
			dst = binary.LittleEndian.AppendUint64(dst, v)
		} else {
			dst = binary.AppendVarint(dst, int64(v))
		}
	}
	return dst
}

// Parse decodes canonical bytes into the histogram and reuses its memory. The error is of class corrupt.
// Parse does not check that the spans fit the buckets.
func (h *Histogram) Parse(b []byte) error {
	h.Reset()
	p := blobParser{in: b}
	flags := p.byte()
	if flags > histogramGauge|histogramFloat {
		p.fail("unknown flags")
	}
	h.Gauge, h.Float = flags&histogramGauge != 0, flags&histogramFloat != 0
	h.Sum = p.fixed()
	schema := p.varint()
	if schema < math.MinInt32 || schema > math.MaxInt32 {
		p.fail("schema out of range")
	}
	h.Schema = int32(schema)
	h.ZeroThreshold = p.fixed()
	h.Count, h.ZeroCount = p.count(h.Float), p.count(h.Float)
	h.PositiveSpans = p.spans(h.PositiveSpans)
	h.NegativeSpans = p.spans(h.NegativeSpans)
	h.Positive = p.buckets(h.Positive, h.Float)
	h.Negative = p.buckets(h.Negative, h.Float)
	h.Custom = p.buckets(h.Custom, true)
	return p.end("histogram")
}

// blobParser reads the value of a row. After its first error it returns zeros.
type blobParser struct {
	in  []byte
	why string
}

func (p *blobParser) fail(why string) {
	if p.why == "" {
		p.why = why
	}
	p.in = nil
}

func (p *blobParser) end(what string) error {
	if p.why == "" && len(p.in) > 0 {
		p.why = "bytes after its end"
	}
	if p.why != "" {
		return fmt.Errorf("%w: %s: %s", ErrCorrupt, what, p.why)
	}
	return nil
}

func (p *blobParser) byte() byte {
	if len(p.in) == 0 {
		p.fail("cut short")
		return 0
	}
	b := p.in[0]
	p.in = p.in[1:]
	return b
}

func (p *blobParser) fixed() uint64 {
	if len(p.in) < 8 {
		p.fail("cut short")
		return 0
	}
	v := binary.LittleEndian.Uint64(p.in)
	p.in = p.in[8:]
	return v
}

// uvarint and varint accept the shortest form only, so that equal values have equal bytes.
func (p *blobParser) uvarint() uint64 {
	v, n := binary.Uvarint(p.in)
	if n <= 0 || n > 1 && p.in[n-1] == 0 {
		p.fail("not a number")
		return 0
	}
	p.in = p.in[n:]
	return v
}

func (p *blobParser) varint() int64 {
	u := p.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (p *blobParser) count(float bool) uint64 {
	if float {
		return p.fixed()
	}
	return p.uvarint()
}

// length reads a count of elements, each of which takes at least min bytes.
func (p *blobParser) length(min uint64) int {
	n := p.uvarint()
	if n > uint64(len(p.in))/min {
		p.fail("more is announced than there is")
		return 0
	}
	return int(n)
}

func (p *blobParser) spans(dst []HistogramSpan) []HistogramSpan {
	for range p.length(2) {
		offset, length := p.varint(), p.uvarint()
		if offset < math.MinInt32 || offset > math.MaxInt32 || length > math.MaxUint32 {
			p.fail("span out of range")
		}
		dst = append(dst, HistogramSpan{int32(offset), uint32(length)})
	}
	return dst
}

func (p *blobParser) buckets(dst []uint64, float bool) []uint64 {
	min := uint64(1)
	if float {
		min = 8
	}
	for range p.length(min) {
		if float {
			dst = append(dst, p.fixed())
		} else {
			dst = append(dst, uint64(p.varint()))
		}
	}
	return dst
}
