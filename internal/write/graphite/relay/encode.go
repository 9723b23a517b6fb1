package relay

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/write/graphite/route"
)

const (
	// framePoints is MAX_DATAPOINTS_PER_MESSAGE of carbon. A carbon closes a connection that announces more
	// than 1 MiB, so a frame ends after the point with which it has frameBytes.
	framePoints = 500
	frameBytes  = 512 << 10
	// lineBytes is the longest line that carbon reads. It closes the connection after a longer one.
	lineBytes = 16 << 10
)

// encode appends points in a protocol of carbon. Those that the protocol cannot say are left out and
// counted.
func encode(to []byte, p route.Protocol, points []byte) (out []byte, left int, err error) {
	if p == route.Line {
		return encodeLines(to, points)
	}
	for len(points) > 0 {
		head := len(to)
		to = append(to, 0, 0, 0, 0)
		if p == route.Pickle {
			to = append(to, 0x80, 2, ']', '(') // PROTO 2, EMPTY_LIST, MARK
		}
		for n := 0; len(points) > 0 && n < framePoints && len(to)-head < frameBytes; n++ {
			var one point
			if one, points, err = nextPoint(points); err != nil {
				return to, left, err
			}
			switch {
			case p == route.Pickle:
				to = appendPickled(to, one)
			case one.time < 0 || one.time > math.MaxUint32:
				left++
			default:
				to = appendMetric(to, one)
			}
		}
		if p == route.Pickle {
			to = append(to, 'e', '.') // APPENDS, STOP
		}
		binary.BigEndian.PutUint32(to[head:], uint32(len(to)-head-4))
	}
	return to, left, nil
}

func encodeLines(to, points []byte) (out []byte, left int, err error) {
	for len(points) > 0 {
		var p point
		if p, points, err = nextPoint(points); err != nil {
			return to, left, err
		}
		begin := len(to)
		to = append(append(to, p.path...), ' ')
		to = append(appendValue(to, p.value), ' ')
		to = strconv.AppendInt(to, p.time, 10)
		if len(to)-begin > lineBytes || splits(p.path) {
			to = to[:begin]
			left++
			continue
		}
		to = append(to, '\n')
	}
	return to, left, nil
}

// appendValue writes a number as carbon does, where ten digits after the point say it exactly. Carbon rounds
// others.
func appendValue(to []byte, v float64) []byte {
	switch a := math.Abs(v); {
	case math.IsInf(v, 0):
		if v < 0 {
			to = append(to, '-')
		}
		return append(to, "inf"...)
	case a != 0 && a < 1e-10 || a >= 1e22:
		return strconv.AppendFloat(to, v, 'e', -1, 64)
	}
	return strconv.AppendFloat(to, v, 'f', -1, 64)
}

// splits reports whether a path would be more than one field of a line. Pickles may bring it.
func splits(path []byte) bool {
	for i := 0; i < len(path); {
		if c := path[i]; c < utf8.RuneSelf {
			// Python also splits at the separators from 0x1c to 0x1f.
			if c <= ' ' && (c == ' ' || c >= '\t' && c <= '\r' || c >= 0x1c) {
				return true
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(path[i:])
		if unicode.IsSpace(r) {
			return true
		}
		i += n
	}
	return false
}

// appendPickled appends (path, (time, value)), with a float as the time, as carbon has it.
func appendPickled(to []byte, p point) []byte {
	to = append(to, 'X') // BINUNICODE
	to = append(binary.LittleEndian.AppendUint32(to, uint32(len(p.path))), p.path...)
	to = binary.BigEndian.AppendUint64(append(to, 'G'), math.Float64bits(float64(p.time))) // BINFLOAT
	to = binary.BigEndian.AppendUint64(append(to, 'G'), math.Float64bits(p.value))
	return append(to, 0x86, 0x86) // TUPLE2 twice
}

// appendMetric appends a message Metric with one point to a Payload of carbon.proto.
func appendMetric(to []byte, p point) []byte {
	inner := protowire.SizeTag(1) + protowire.SizeVarint(uint64(p.time)) + protowire.SizeTag(2) + 8
	outer := protowire.SizeTag(1) + protowire.SizeBytes(len(p.path)) + protowire.SizeTag(2) + protowire.SizeBytes(inner)
	to = protowire.AppendVarint(protowire.AppendTag(to, 1, protowire.BytesType), uint64(outer))
	to = protowire.AppendBytes(protowire.AppendTag(to, 1, protowire.BytesType), p.path)
	to = protowire.AppendVarint(protowire.AppendTag(to, 2, protowire.BytesType), uint64(inner))
	to = protowire.AppendVarint(protowire.AppendTag(to, 1, protowire.VarintType), uint64(p.time))
	return protowire.AppendFixed64(protowire.AppendTag(to, 2, protowire.Fixed64Type), math.Float64bits(p.value))
}
