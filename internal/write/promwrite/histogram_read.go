package promwrite

import (
	"encoding/binary"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/wire"
)

// gaugeHint is the reset hint of gauge histograms.
const gaugeHint = 3

// nativeHistogram is a Histogram message of either version, with the memory to parse, check and store
// it.
type nativeHistogram struct {
	histogramNumbers
	positive, negative side
	custom             []float64
	// most is the largest number of entries in a list; further ones are dropped.
	most int

	integer histogram.Histogram
	float   histogram.FloatHistogram
	out     model.Histogram
}

// histogramNumbers are the fields of a histogram that are not lists.
type histogramNumbers struct {
	// isFloat and zeroIsFloat tell in which of its two forms a count came last; the last one counts.
	isFloat, zeroIsFloat bool
	// tooMany means that a list has too many entries.
	tooMany bool
	// count and zeros are integers or the bits of a float. sum and threshold are bits.
	count, zeros, sum, threshold uint64
	schema, hint                 int32
	ms, startMs                  int64
}

// side has the positive or negative buckets: deltas for integer histograms, counts for float
// histograms.
type side struct {
	spans  []histogram.Span
	deltas []int64
	counts []float64
}

func (s *side) reset() { s.spans, s.deltas, s.counts = s.spans[:0], s.deltas[:0], s.counts[:0] }

// memory returns the bytes that are kept between requests. The built forms have no more entries than
// the parsed lists.
func (h *nativeHistogram) memory() int {
	sideBytes := func(s *side) int { return 8 * (cap(s.spans) + cap(s.deltas) + cap(s.counts)) }
	return 2 * (sideBytes(&h.positive) + sideBytes(&h.negative) + 8*cap(h.custom))
}

// zeroCount returns the count of the zero bucket. It is 0 if its form, integer or float, is not that of
// the count.
func (h *nativeHistogram) zeroCount() uint64 {
	if h.isFloat != h.zeroIsFloat {
		return 0
	}
	return h.zeros
}

// bounds returns the custom bounds, or nil if there are none, as upstream expects.
func (h *nativeHistogram) bounds() []float64 {
	if len(h.custom) == 0 {
		return nil
	}
	return h.custom
}

// read parses the message in [p, end).
func (h *nativeHistogram) read(d []byte, p, end int, v version, most int) error {
	h.positive.reset()
	h.negative.reset()
	h.histogramNumbers, h.custom, h.most = histogramNumbers{}, h.custom[:0], most
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		if err == nil {
			switch {
			case n > 17 || n == 17 && v == v1:
				next, err = wire.Skip(d, next, end, kind)
			case n >= 8 && n <= 13 || n == 16:
				next, err = h.readList(d, n, kind, next, end)
			default:
				next, err = h.readNumber(d, n, kind, next, end)
			}
		}
		if err != nil {
			return err
		}
		p = next
	}
	return nil
}

// readNumber parses a field that is a single number. p is the offset after its tag.
func (h *nativeHistogram) readNumber(d []byte, n int32, kind protowire.Type, p, end int) (next int, err error) {
	var v uint64
	switch n {
	case 1:
		h.count, next, err = wire.Number("histogram's count", d, kind, p, end)
		h.isFloat = false
	case 2:
		h.count, next, err = wire.Double("histogram's count", d, kind, p, end)
		h.isFloat = true
	case 3:
		h.sum, next, err = wire.Double("histogram's sum", d, kind, p, end)
	case 4:
		v, next, err = wire.Number("histogram's schema", d, kind, p, end)
		h.schema = wire.Zigzag32(v)
	case 5:
		h.threshold, next, err = wire.Double("histogram's zero threshold", d, kind, p, end)
	case 6:
		h.zeros, next, err = wire.Number("histogram's zero count", d, kind, p, end)
		h.zeroIsFloat = false
	case 7:
		h.zeros, next, err = wire.Double("histogram's zero count", d, kind, p, end)
		h.zeroIsFloat = true
	case 14:
		v, next, err = wire.Number("histogram's reset hint", d, kind, p, end)
		h.hint = int32(v)
	case 15:
		v, next, err = wire.Number("timestamp", d, kind, p, end)
		h.ms = int64(v)
	case 17:
		v, next, err = wire.Number("start timestamp", d, kind, p, end)
		h.startMs = int64(v)
	}
	return next, err
}

// readList parses a repeated field, or one entry of it. p is the offset after its tag.
func (h *nativeHistogram) readList(d []byte, n int32, kind protowire.Type, p, end int) (next int, err error) {
	s := &h.positive
	if n <= 10 {
		s = &h.negative
	}
	switch n {
	case 8, 11:
		begin, stop, err := wire.Message("a histogram's span", d, kind, p, end)
		if err != nil {
			return 0, err
		}
		return stop, h.readSpan(&s.spans, d, begin, stop)
	case 9, 12:
		return h.readDeltas(&s.deltas, d, kind, p, end)
	case 10, 13:
		return h.readDoubles(&s.counts, d, kind, p, end)
	}
	return h.readDoubles(&h.custom, d, kind, p, end)
}

func (h *nativeHistogram) readSpan(dst *[]histogram.Span, d []byte, p, end int) error {
	var s histogram.Span
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		var v uint64
		switch {
		case err != nil:
		case n == 1:
			v, next, err = wire.Number("span's offset", d, kind, next, end)
			s.Offset = wire.Zigzag32(v)
		case n == 2:
			v, next, err = wire.Number("span's length", d, kind, next, end)
			s.Length = uint32(v)
		default:
			next, err = wire.Skip(d, next, end, kind)
		}
		if err != nil {
			return err
		}
		p = next
	}
	if h.fits(len(*dst)) {
		*dst = append(*dst, s)
	}
	return nil
}

// fits reports whether a list of n entries may have one more.
func (h *nativeHistogram) fits(n int) bool {
	h.tooMany = h.tooMany || n >= h.most
	return n < h.most
}

func (h *nativeHistogram) readDeltas(dst *[]int64, d []byte, kind protowire.Type, p, end int) (next int, err error) {
	packed := kind == protowire.BytesType
	if packed {
		if p, end, err = wire.Body(d, p, end); err != nil {
			return 0, err
		}
	}
	for first := true; packed && p < end || !packed && first; first = false {
		v, next, err := wire.Number("histogram's bucket", d, protowire.VarintType, p, end)
		if err != nil || !packed && kind != protowire.VarintType {
			return 0, &wire.Malformed{What: "a histogram's bucket that is not a number", At: p}
		}
		if h.fits(len(*dst)) {
			*dst = append(*dst, protowire.DecodeZigZag(v))
		}
		p = next
	}
	return p, nil
}

func (h *nativeHistogram) readDoubles(dst *[]float64, d []byte, kind protowire.Type, p, end int) (next int, err error) {
	stop := p + 8
	if kind == protowire.BytesType {
		if p, stop, err = wire.Body(d, p, end); err != nil {
			return 0, err
		}
	}
	if kind != protowire.BytesType && kind != protowire.Fixed64Type || stop > end || (stop-p)%8 != 0 {
		return 0, &wire.Malformed{What: "a histogram's bucket or bound that is not a double", At: p}
	}
	for ; p < stop; p += 8 {
		if h.fits(len(*dst)) {
			*dst = append(*dst, math.Float64frombits(binary.LittleEndian.Uint64(d[p:])))
		}
	}
	return stop, nil
}
