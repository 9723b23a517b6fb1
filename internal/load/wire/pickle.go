package wire

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// Opcodes of pickle's protocol 2, as far as a list of (name, (time, value)) needs them.
const (
	opProto     = 0x80
	opList      = ']'
	opMark      = '('
	opText      = 'X'  // length in 4 bytes, UTF-8
	opByte      = 'K'  // integers of 1, 2 and 4 bytes, the last one with a sign
	opShort     = 'M'  //
	opInt       = 'J'  //
	opLong      = 0x8a // length in 1 byte, two's complement
	opFloat     = 'G'  // 8 bytes, big-endian
	opPair      = 0x86
	opAppend    = 'a'
	opAppends   = 'e'
	opRemember  = 'q' // under a number of 1 byte
	opRemember4 = 'r' // of 4 bytes
	opEnd       = '.'
)

// PickleBatch is the number of points in a message of carbon's own client.
const PickleBatch = 500

// pickles is Fill for messages, each after its length.
func (l *Points) pickles(dst []byte, max, full int, whole bool) ([]byte, int) {
	n := 0
	l.Frames = l.Frames[:0]
	for over := false; !over && n < max && (n == 0 || len(dst) < full); {
		begin, points := len(dst), min(max-n, PickleBatch, l.left(whole))
		dst = append(dst, 0, 0, 0, 0)
		dst = l.pickle(dst, points)
		binary.BigEndian.PutUint32(dst[begin:], uint32(len(dst)-begin-4))
		l.Frames = append(l.Frames, Frame{len(dst), points})
		n += points
		over = l.Slot == 0 && (!whole || l.Agent == l.connection)
	}
	return dst, n
}

// left returns how many points of the agent or, if whole is set, of the round remain.
func (l *Points) left(whole bool) int {
	left := l.Size - l.Slot
	if whole {
		after := (l.agents.Agents - 1 - l.Agent) / l.agents.Connections
		left += after * l.Size
	}
	return left
}

// pickle appends the next n points as Python's pickle.dumps(points, protocol=2) does, including its memo of
// objects that are never used again.
func (l *Points) pickle(dst []byte, n int) []byte {
	dst = append(dst, opProto, 2, opList)
	memo := 0
	remember := func() {
		if memo < 256 {
			dst = append(dst, opRemember, byte(memo))
		} else {
			dst = binary.LittleEndian.AppendUint32(append(dst, opRemember4), uint32(memo))
		}
		memo++
	}
	remember()
	if n > 1 {
		dst = append(dst, opMark)
	}
	for range n {
		l.name = strconv.AppendInt(append(l.name[:0], l.before...), int64(l.metric), 10)
		l.name = append(l.name, l.after[:len(l.after)-1]...)
		dst = binary.LittleEndian.AppendUint32(append(dst, opText), uint32(len(l.name)))
		dst = append(dst, l.name...)
		remember()
		dst = appendPickledInt(dst, l.now.seconds)
		dst = binary.BigEndian.AppendUint64(append(dst, opFloat), l.agents.Value.Bits(&l.now.Instant, l.series()))
		dst = append(dst, opPair)
		remember()
		dst = append(dst, opPair)
		remember()
		l.advance()
	}
	if n > 1 {
		return append(dst, opAppends, opEnd)
	}
	return append(dst, opAppend, opEnd)
}

// appendPickledInt appends an integer in the shortest form.
func appendPickledInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0 && v <= math.MaxUint8:
		return append(dst, opByte, byte(v))
	case v >= 0 && v <= math.MaxUint16:
		return binary.LittleEndian.AppendUint16(append(dst, opShort), uint16(v))
	case v >= math.MinInt32 && v <= math.MaxInt32:
		return binary.LittleEndian.AppendUint32(append(dst, opInt), uint32(v))
	}
	size := bits.Len64(uint64(v^v>>63))/8 + 1 // one bit more for the sign
	dst = append(dst, opLong, byte(size))
	for i := range size {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}
