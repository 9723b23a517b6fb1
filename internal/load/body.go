package load

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/s2"
)

// body makes the requests of one sender. All series of a fleet have messages of one length, since their numbers have
// a fixed width; so a request is a row of equal slots, written once, in which only digits, values and times change.
//
// Only a window of the row exists. It is filled, compressed and filled again, as blocks of snappy may stand behind
// one another: the whole row of a usual request is larger than a cache of the processor, and at a steady pace, when
// caches are cold each time, that doubled the cost.
type body struct {
	fleet *Fleet
	slot  template
	raw   []byte // the window
	out   []byte

	target, metric []byte // digits, made once per change
	series         []byte
}

// template is the TimeSeries message of a series, with its tag and length, and the places in it that change.
type template struct {
	bytes                  []byte
	metric, series         int
	targets                []int
	value, time, timeWidth int
}

// windowBytes is the size of the blocks in which other encoders of snappy work.
const windowBytes = 64 << 10

// newBody makes the window.
func newBody(f *Fleet) *body {
	b := &body{fleet: f}
	b.target = make([]byte, f.width(targetNumber))
	b.metric = make([]byte, f.width(metricNumber))
	b.series = make([]byte, f.width(seriesNumber))
	b.lay(varintLen(1_700_000_000_000))
	return b
}

// lay writes the template into every slot. It happens once, and again if the length of the times should change.
func (b *body) lay(timeWidth int) {
	b.slot = newTemplate(b.fleet, timeWidth)
	b.raw = b.raw[:0]
	for range max(1, windowBytes/len(b.slot.bytes)) {
		b.raw = append(b.raw, b.slot.bytes...)
	}
}

func newTemplate(f *Fleet, timeWidth int) template {
	t := template{timeWidth: timeWidth}
	var msg []byte
	for _, l := range f.labels() {
		width := f.width(l.kind)
		value := make([]byte, 0, len(l.before)+width+len(l.after))
		value = append(value, l.before...)
		value = append(value, make([]byte, width)...)
		value = append(value, l.after...)
		pair := appendField(nil, 0x0a, []byte(l.name))
		pair = appendField(pair, 0x12, value)
		msg = appendField(msg, 0x0a, pair)
		at := len(msg) - len(value) + len(l.before)
		switch l.kind {
		case targetNumber:
			t.targets = append(t.targets, at)
		case metricNumber:
			t.metric = at
		case seriesNumber:
			t.series = at
		}
	}
	// A sample with both fields written out: encoders may leave out a zero, but then slots would differ in length.
	msg = append(msg, 0x12, byte(1+8+1+timeWidth), 0x09)
	t.value = len(msg)
	msg = append(msg, make([]byte, 8)...)
	msg = append(msg, 0x10)
	t.time = len(msg)
	msg = append(msg, make([]byte, timeWidth)...)

	head := len(appendField(nil, 0x0a, msg)) - len(msg)
	t.bytes = appendField(nil, 0x0a, msg)
	t.metric, t.series, t.value, t.time = t.metric+head, t.series+head, t.value+head, t.time+head
	for i := range t.targets {
		t.targets[i] += head
	}
	return t
}

func appendField(dst []byte, tag byte, field []byte) []byte {
	dst = append(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(field)))
	return append(dst, field...)
}

func varintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// fill makes the request that holds one sample, of the given round and time in Unix milliseconds, of each of n series
// from first on. It returns the compressed request, which stays valid until the next call, and its size without
// compression.
func (b *body) fill(first int64, n, round int, ms int64) (compressed []byte, size int) {
	if w := varintLen(uint64(ms)); w != b.slot.timeWidth {
		b.lay(w)
	}
	var stamp [binary.MaxVarintLen64]byte
	binary.PutUvarint(stamp[:], uint64(ms))
	size = n * len(b.slot.bytes)
	b.out = binary.AppendUvarint(b.out[:0], uint64(size))
	window := len(b.raw) / len(b.slot.bytes)
	for end := first + int64(n); first < end; first += int64(window) {
		b.appendBlock(b.patch(first, int(min(int64(window), end-first)), round, stamp[:b.slot.timeWidth]))
	}
	return b.out, size
}

// appendBlock compresses a part of the request behind those that are there: a snappy stream is its length and then
// elements, and those of a block refer to nothing outside it.
func (b *body) appendBlock(raw []byte) {
	at := len(b.out)
	b.out = slices.Grow(b.out, s2.MaxEncodedLen(len(raw)))
	block := s2.EncodeSnappy(b.out[at:cap(b.out)], raw)
	_, used := binary.Uvarint(block)
	b.out = append(b.out, block[used:]...) // moves it over its own length
}

// patch fills the first slots of the window with n series.
func (b *body) patch(first int64, n, round int, time []byte) []byte {
	f, size := b.fleet, len(b.slot.bytes)
	t, m, s := f.place(first)
	putNumber(b.target, t)
	putNumber(b.metric, m)
	for i := range n {
		slot := b.raw[i*size : (i+1)*size]
		for _, at := range b.slot.targets {
			copy(slot[at:], b.target)
		}
		copy(slot[b.slot.metric:], b.metric)
		putNumber(slot[b.slot.series:b.slot.series+len(b.series)], s)
		binary.LittleEndian.PutUint64(slot[b.slot.value:], f.Bits(first+int64(i), round))
		copy(slot[b.slot.time:], time)
		if s++; s < f.Series {
			continue
		}
		s = 0
		if m++; m == f.Metrics {
			m = 0
			t++
			putNumber(b.target, t)
		}
		putNumber(b.metric, m)
	}
	return b.raw[:n*size]
}
