package graphite

import (
	"fmt"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/wire"
)

// protobufPoints feeds rows from a payload of carbon's protobuf protocol, in place:
//
//	Payload { repeated Metric metrics = 1; }
//	Metric  { string metric = 1; repeated Point points = 2; }
//	Point   { uint32 timestamp = 1; double value = 2; }
type protobufPoints struct {
	p *parser
	walk
	// n is how many more points feed reads.
	n int
}

// walk is a place in a payload.
type walk struct {
	b         []byte
	at        int // of the next metric
	point     int // of the next field of the current metric
	pointsEnd int
	name      []byte
}

// next returns the time and the bits of the value of the next point. It returns false at the end.
func (w *walk) next() (seconds uint32, bits uint64, ok bool, err error) {
	for {
		for w.point < w.pointsEnd {
			number, kind, at, err := wire.Field(w.b, w.point, w.pointsEnd)
			if err != nil {
				return 0, 0, false, err
			}
			if number != 2 {
				if w.point, err = wire.Skip(w.b, at, w.pointsEnd, kind); err != nil {
					return 0, 0, false, err
				}
				continue
			}
			begin, end, err := wire.Message("point", w.b, kind, at, w.pointsEnd)
			if err != nil {
				return 0, 0, false, err
			}
			w.point = end
			seconds, bits, err = readPoint(w.b, begin, end)
			return seconds, bits, true, err
		}
		if more, err := w.nextMetric(); err != nil || !more {
			return 0, 0, false, err
		}
	}
}

// nextMetric moves to the points of the next metric.
func (w *walk) nextMetric() (more bool, err error) {
	for w.at < len(w.b) {
		number, kind, at, err := wire.Field(w.b, w.at, len(w.b))
		if err != nil {
			return false, err
		}
		if number != 1 {
			if w.at, err = wire.Skip(w.b, at, len(w.b), kind); err != nil {
				return false, err
			}
			continue
		}
		begin, end, err := wire.Message("metric", w.b, kind, at, len(w.b))
		if err != nil {
			return false, err
		}
		w.at, w.point, w.pointsEnd = end, begin, end
		w.name, err = readName(w.b, begin, end)
		return true, err
	}
	return false, nil
}

// readName finds the name of a metric, which may come after its points.
func readName(b []byte, p, end int) (name []byte, err error) {
	for p < end {
		number, kind, at, err := wire.Field(b, p, end)
		if err != nil {
			return nil, err
		}
		if number != 1 {
			if p, err = wire.Skip(b, at, end, kind); err != nil {
				return nil, err
			}
			continue
		}
		begin, stop, err := wire.Message("name", b, kind, at, end)
		if err != nil {
			return nil, err
		}
		name, p = b[begin:stop], stop
	}
	return name, nil
}

func readPoint(b []byte, p, end int) (seconds uint32, bits uint64, err error) {
	for p < end {
		number, kind, at, err := wire.Field(b, p, end)
		if err != nil {
			return 0, 0, err
		}
		switch number {
		case 1:
			var v uint64
			v, p, err = wire.Number("timestamp", b, kind, at, end)
			seconds = uint32(v)
		case 2:
			bits, p, err = wire.Double("value", b, kind, at, end)
		default:
			p, err = wire.Skip(b, at, end, kind)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return seconds, bits, nil
}

// decodeProtobuf checks a payload and delivers its points.
func decodeProtobuf(c *frameConn, in []byte) bool {
	w, n := walk{b: in}, 0
	for {
		_, _, ok, err := w.next()
		if err != nil {
			c.lose(undecodable, fmt.Errorf("%w: protobuf: %w", model.ErrInvalid, err), in)
			return true
		}
		if !ok {
			break
		}
		n++
	}
	c.protobuf = protobufPoints{p: c.parser, walk: walk{b: in}}
	return c.deliver(&c.protobuf, n)
}

func (it *protobufPoints) left() int { return it.n }

func (it *protobufPoints) take(n int) { it.n = n }

// nextSlice returns how many of the next points, at most most, share one reservation, and the most bytes that
// their rows need.
func (it *protobufPoints) nextSlice(most int) (n int, bytes int64) {
	ahead := it.walk
	for n < min(most, slicePoints) && bytes < sliceBytes {
		_, _, _, _ = ahead.next() // decodeProtobuf has checked it
		n++
		bytes += rowBytes + int64(min(len(ahead.name), it.p.maxLine))
	}
	return n, bytes
}

// feed reads points into c.
func (it *protobufPoints) feed(c *chunk) (more bool) {
	for it.n > 0 && !c.full() {
		seconds, bits, _, _ := it.next() // decodeProtobuf has checked it
		it.n--
		it.p.counts.lines++
		it.add(seconds, bits, c)
	}
	return it.n > 0
}

func (it *protobufPoints) add(seconds uint32, bits uint64, c *chunk) {
	if math.IsNaN(math.Float64frombits(bits)) {
		it.p.nan(it.name)
		return
	}
	if why := it.p.pathPoint(it.name, int64(seconds)*second, bits, c); why != "" {
		it.p.bad(it.name[:min(len(it.name), maxShown)], why)
	}
}
