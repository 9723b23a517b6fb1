package load

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/s2"
)

// seam is a place at which a text begins that other lines of the stream may have as well. Who makes lines knows these places;
// a compressor that has to find them is the most of what sending lines costs.
type seam struct {
	at   uint32
	text uint8
}

// The texts, by number. Texts of one list follow each other.
const (
	lineText uint8 = iota
	levelText
	traceText
	spanText
	bytesText
	durationText
	componentTexts // of 8
	methodTexts    = componentTexts + 8
	pathTexts      = methodTexts + 8
	agentTexts     = pathTexts + 8
	statusTexts    = agentTexts + 8 // of 16
	messageTexts   = statusTexts + 16
	troubleTexts   = messageTexts + 16
	seamTexts      = troubleTexts + 16
)

// minCopy is the shortest text that is referred to: a reference takes three bytes, and so may what goes on behind it.
const minCopy = 6

// addSeams adds a part whose seams are known, as the elements of a snappy stream: at each seam it refers to the last place of the
// text, for as long as the bytes are the same, and takes all else as it is. See google/snappy, format_description.txt.
func (p *snappyPacker) addSeams(raw []byte, seams []seam) {
	if len(seams) == 0 {
		p.add(raw)
		return
	}
	p.size += len(raw)
	p.out = slices.Grow(p.out, s2.MaxEncodedLen(len(raw)))
	var last [seamTexts]uint32 // and 1
	done := 0
	for _, s := range seams {
		offset := int(s.at) + 1 - int(last[s.text])
		first := last[s.text] == 0
		last[s.text] = s.at + 1
		if first || offset <= 0 || offset >= windowBytes {
			continue
		}
		// The text before this one may have gone on into it, and ended there.
		at := max(int(s.at), done)
		n := sameBytes(raw[at-offset:], raw[at:])
		if n < minCopy {
			continue
		}
		p.out = appendLiteral(p.out, raw[done:at])
		p.out = appendCopy(p.out, offset, n)
		done = at + n
	}
	p.out = appendLiteral(p.out, raw[done:])
}

// sameBytes returns how many of the first bytes of b are those of a, which is longer.
func sameBytes(a, b []byte) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		if diff := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); diff != 0 {
			return n + bits.TrailingZeros64(diff)/8
		}
	}
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Elements of snappy, by their lowest two bits.
const (
	snappyLiteral = 0
	snappyCopy    = 2 // with an offset of two bytes
)

// appendLiteral appends bytes as they are.
func appendLiteral(dst, b []byte) []byte {
	switch n := len(b) - 1; {
	case n < 0:
		return dst
	case n < 60:
		dst = append(dst, byte(n)<<2|snappyLiteral)
	case n < 1<<8:
		dst = append(dst, 60<<2|snappyLiteral, byte(n))
	case n < 1<<16:
		dst = append(dst, 61<<2|snappyLiteral, byte(n), byte(n>>8))
	default:
		dst = append(dst, 63<<2|snappyLiteral, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return append(dst, b...)
}

// appendCopy refers to n bytes, offset before, which is less than windowBytes.
func appendCopy(dst []byte, offset, n int) []byte {
	for ; n > 0; n -= min(n, 64) {
		dst = append(dst, byte(min(n, 64)-1)<<2|snappyCopy, byte(offset), byte(offset>>8))
	}
	return dst
}
