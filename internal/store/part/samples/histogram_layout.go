package samples

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
)

// What seldom changes from one histogram to the next stands in two dictionaries of the page: shapes (flags,
// schema, zero threshold, custom bounds), of which a page has a few, and layouts (a shape and the spans of
// its buckets), of which a series has one until a bucket is hit for the first time. Custom bounds are long
// and the same for all series of a metric, while the buckets that are in use differ: hence two.

const (
	shapeGauge byte = 1
	shapeFloat byte = 2
)

// byteDict numbers distinct byte strings in the order in which they come.
type byteDict struct {
	ids map[string]int
	buf []byte
}

func (d *byteDict) reset() {
	clear(d.ids)
	d.buf = d.buf[:0]
}

func (d *byteDict) id(b []byte) int {
	if id, ok := d.ids[string(b)]; ok {
		return id
	}
	if d.ids == nil {
		d.ids = make(map[string]int)
	}
	id := len(d.ids)
	d.ids[string(b)] = id
	d.buf = append(d.buf, b...)
	return id
}

// append writes the number of strings and the strings, which must tell their own lengths.
func (d *byteDict) append(dst []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(d.ids))), d.buf...)
}

// layoutDict numbers the layouts of the histograms of a page.
type layoutDict struct {
	shapes, layouts byteDict
	scratch, last   []byte
	entry           []byte
	lastID          int
}

func (d *layoutDict) reset() {
	d.shapes.reset()
	d.layouts.reset()
	d.last = d.last[:0]
}

func (d *layoutDict) size() int { return len(d.shapes.buf) + len(d.layouts.buf) }

// id returns the number of the histogram's layout.
func (d *layoutDict) id(h *model.Histogram) int {
	flags := byte(0)
	if h.Gauge {
		flags |= shapeGauge
	}
	if h.Float {
		flags |= shapeFloat
	}
	b := append(d.scratch[:0], flags)
	b = binary.AppendVarint(b, int64(h.Schema))
	b = binary.LittleEndian.AppendUint64(b, h.ZeroThreshold)
	b = binary.AppendUvarint(b, uint64(len(h.Custom)))
	for _, v := range h.Custom {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	shape := len(b)
	b = appendSpans(appendSpans(b, h.PositiveSpans), h.NegativeSpans)
	d.scratch = b
	if len(d.last) > 0 && string(b) == string(d.last) {
		return d.lastID
	}
	d.last = append(d.last[:0], b...)
	// The spans move after the number of the shape.
	d.entry = append(binary.AppendUvarint(d.entry[:0], uint64(d.shapes.id(b[:shape]))), b[shape:]...)
	d.lastID = d.layouts.id(d.entry)
	return d.lastID
}

func appendSpans(dst []byte, spans []model.HistogramSpan) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(spans)))
	for _, s := range spans {
		dst = binary.AppendVarint(dst, int64(s.Offset))
		dst = binary.AppendUvarint(dst, uint64(s.Length))
	}
	return dst
}

// append writes both dictionaries.
func (d *layoutDict) append(dst []byte) []byte { return d.layouts.append(d.shapes.append(dst)) }

// checkHistogram returns why a histogram cannot be stored, or "".
func checkHistogram(h *model.Histogram) string {
	switch {
	case spanLength(h.PositiveSpans) != uint64(len(h.Positive)):
		return "its positive spans do not fit its buckets"
	case spanLength(h.NegativeSpans) != uint64(len(h.Negative)):
		return "its negative spans do not fit its buckets"
	}
	return ""
}

func spanLength(spans []model.HistogramSpan) uint64 {
	n := uint64(0)
	for _, s := range spans {
		n += uint64(s.Length)
	}
	return n
}

// layout is a decoded entry of the dictionary.
type layout struct {
	// h has what all histograms of the layout share. Its slices must not be changed.
	h                  model.Histogram
	positive, negative int // buckets
	// least is how many bytes a histogram of the layout has at least.
	least uint64
	// flat are the bytes that all histograms of the layout share, if the others have fixed places; see [flat].
	flat flat
}

// flat is for histograms of floats without negative buckets and custom bounds, which all rollups are. Their
// bytes are flags, sum, schema, count, zero count, spans, positive buckets, and a zero for each of the lists
// that they do not have.
type flat struct{ flags, schema, spans []byte }

// flatBuckets bounds the memory that flatOf takes for a layout of a damaged page.
const flatBuckets = 256

// flatOf returns what histograms of a layout share, or nothing if their numbers have no fixed places.
func flatOf(l *layout) (f flat) {
	if !l.h.Float || len(l.h.NegativeSpans) > 0 || len(l.h.Custom) > 0 {
		return flat{}
	}
	h := l.h
	h.Positive = make([]uint64, l.positive)
	b := model.AppendHistogram(nil, &h)
	spans := len(b) - 2 - 8*l.positive
	for schema := 9; schema < len(b); schema++ {
		if b[schema] < 0x80 { // its last byte
			schema += 9
			// Clones, so that a layout does not keep its zero buckets.
			return flat{flags: bytes.Clone(b[:1]), schema: bytes.Clone(b[9:schema]), spans: bytes.Clone(b[schema+16 : spans])}
		}
	}
	return flat{}
}

// numbers is how many numbers a histogram of the layout has: the zero count, the buckets, the count, the sum.
func (l *layout) numbers() int { return 3 + l.positive + l.negative }

// readLayouts decodes both dictionaries. What it allocates is bounded by the bytes of the page.
func readLayouts(dst []layout, b []byte) ([]layout, error) {
	s := column.Scan{Rest: b}
	var shapes []model.Histogram
	for range s.Below(uint64(len(b))) {
		shapes = append(shapes, readShape(&s))
		if s.Bad {
			break
		}
	}
	for range s.Below(uint64(len(s.Rest))) {
		ref := s.Uvarint()
		if ref >= uint64(len(shapes)) {
			s.Fail()
			break
		}
		l := layout{h: shapes[ref]}
		l.h.PositiveSpans, l.positive = readSpans(&s)
		l.h.NegativeSpans, l.negative = readSpans(&s)
		perBucket := uint64(1)
		if l.h.Float {
			perBucket = 8
		}
		l.least = 20 + 8*uint64(len(l.h.Custom)) + perBucket*uint64(l.positive+l.negative)
		if s.Bad {
			break
		}
		if spanLength(l.h.PositiveSpans) <= flatBuckets {
			l.flat = flatOf(&l)
		}
		dst = append(dst, l)
	}
	return dst, s.End("layouts of histograms")
}

func readShape(s *column.Scan) model.Histogram {
	flags := s.Byte()
	schema := s.Varint()
	if flags > shapeGauge|shapeFloat || schema < math.MinInt32 || schema > math.MaxInt32 {
		s.Fail()
	}
	h := model.Histogram{Gauge: flags&shapeGauge != 0, Float: flags&shapeFloat != 0, Schema: int32(schema), ZeroThreshold: s.U64()}
	for range s.Below(uint64(len(s.Rest)) / 8) {
		h.Custom = append(h.Custom, s.U64())
	}
	return h
}

// readSpans returns the spans and how many buckets they have.
func readSpans(s *column.Scan) ([]model.HistogramSpan, int) {
	var spans []model.HistogramSpan
	buckets := 0
	for range s.Below(uint64(len(s.Rest)) / 2) {
		offset := s.Varint()
		length := s.Below(math.MaxUint32)
		if offset < math.MinInt32 || offset > math.MaxInt32 {
			s.Fail()
		}
		if buckets += length; buckets > MaxSeriesBytes {
			s.Fail()
			break
		}
		spans = append(spans, model.HistogramSpan{Offset: int32(offset), Length: uint32(length)})
	}
	return spans, buckets
}
