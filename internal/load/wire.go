package load

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/shaledb/shale/internal/model"
)

// point is one sample of one series, with all that a message about it can say.
type point struct {
	place
	g        int64  // number of the series
	identity uint64 // number that its values depend on
	*moment
	// stale makes it the marker that ends the series.
	stale bool
}

// contents is what a request holds.
type contents struct {
	samples, histograms, exemplars int
	// Of samples and histograms: markers, late ones, and ones that were sent before.
	stale, late, twice int
}

func (c *contents) points() int { return c.samples + c.histograms }

// Tags of protobuf: the number of a field and the kind of its bytes.
const (
	varint = 0
	fixed8 = 1
	sized  = 2
)

func tag(field, kind int) byte { return byte(field<<3 | kind) }

func appendField(dst []byte, tag byte, field []byte) []byte {
	dst = append(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(field)))
	return append(dst, field...)
}

func appendVarint(dst []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(append(dst, tag(field, varint)), v)
}

func appendFixed(dst []byte, field int, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, tag(field, fixed8)), v)
}

func appendFloat(dst []byte, field int, v float64) []byte {
	return appendFixed(dst, field, math.Float64bits(v))
}

func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func varintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// appendSample appends the body of a Sample, which is the same in both versions but for its start time, 0 if it has
// none. A value of 0 is written out.
func appendSample(dst []byte, bits uint64, ms, start int64) []byte {
	dst = appendFixed(dst, 1, bits)
	dst = appendVarint(dst, 2, uint64(ms))
	if start != 0 {
		dst = appendVarint(dst, 3, uint64(start))
	}
	return dst
}

// bits returns the value of a float, and that of an exemplar of a histogram.
func (p *point) bits(m ValueModel) uint64 {
	switch {
	case p.stale:
		return model.StaleNaN
	case m.Histogram():
		return Gauge.Bits(&p.instant, p.identity)
	}
	return m.Bits(&p.instant, p.identity)
}

func (p *point) ms() int64 { return p.ns / 1e6 }

// exemplar reports whether a sample has one, and which trace it names.
func (f *Fleet) exemplar(p *point, trace *[traceBytes]byte) bool {
	if f.Exemplars == 0 || p.stale {
		return false
	}
	drawn := draw(p.seed^saltExemplar, p.identity, p.tick)
	if !happens(f.Exemplars, drawn) {
		return false
	}
	const hex = "0123456789abcdef"
	high, low := spread(drawn), spread(drawn+saltExemplar)
	for i := range 16 {
		trace[i], trace[16+i] = hex[high>>(4*i)&15], hex[low>>(4*i)&15]
	}
	return true
}

// traceLabel is what an exemplar is called by, and traceBytes the length of its value.
const (
	traceLabel = "trace_id"
	traceBytes = 32
)
