package load

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// LogFormat is the form of pushes.
type LogFormat uint8

// The forms: protobuf under snappy, as agents send it, and JSON without compression.
const (
	LogProtobuf LogFormat = iota
	LogJSON
)

var logFormatNames = [...]string{"protobuf", "json"}

// UnmarshalText reads the name of a form. Its error is of class [model.ErrInvalid].
func (f *LogFormat) UnmarshalText(text []byte) error {
	i := slices.Index(logFormatNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%w: format %q: want protobuf or json", model.ErrInvalid, text)
	}
	*f = LogFormat(i)
	return nil
}

// header is what describes bodies. Agents send no Content-Encoding for snappy: the form implies it.
func (f LogFormat) header() string {
	if f == LogJSON {
		return "Content-Type: application/json\r\n"
	}
	return "Content-Type: application/x-protobuf\r\n"
}

// logBody makes pushes, one after the other in the same memory.
type logBody struct {
	writer  *logWriter
	format  LogFormat
	labels  map[int]string // of streams, as the form has them
	raw     []byte         // of JSON
	current []byte         // the stream that is being written
	seams   []seam         // of its lines
	begun   bool
	zip     snappyPacker
	lines   int64
	bytes   int64 // of lines
}

// maxLabelTexts bounds the labels that are remembered: those of more streams are written anew.
const maxLabelTexts = 1 << 16

func newLogBody(w *logWriter, format LogFormat) *logBody {
	return &logBody{writer: w, format: format, labels: map[int]string{}}
}

// fill makes the push of a node in a window, and returns it as it is sent, and its size without compression.
func (b *logBody) fill(window, node int) (body []byte, size int) {
	b.raw, b.begun, b.lines, b.bytes = b.raw[:0], false, 0, 0
	if b.zip.begin(); b.format == LogJSON {
		b.raw = append(b.raw, `{"streams":[`...)
	}
	b.writer.push(window, node, b)
	b.finish()
	if b.format == LogJSON {
		b.raw = append(b.raw, `]}`...)
		return b.raw, len(b.raw)
	}
	return b.zip.end()
}

// stream begins a stream, which ends the one before.
func (b *logBody) stream(stream int) {
	b.finish()
	b.begun, b.seams = true, b.seams[:0]
	text, ok := b.labels[stream]
	if !ok {
		ls := b.writer.labelsOf(stream)
		if text = labelText(ls); b.format == LogJSON {
			text = string(appendObject(nil, ls))
		}
		if len(b.labels) < maxLabelTexts {
			b.labels[stream] = text
		}
	}
	if b.format == LogJSON {
		b.current = append(append(append(b.current[:0], `{"stream":`...), text...), `,"values":[`...)
		return
	}
	b.current = append(slices.Grow(b.current[:0], lengthRoom)[:lengthRoom], tag(1, sized))
	b.current = append(binary.AppendUvarint(b.current, uint64(len(text))), text...)
}

// lengthRoom is room for the length of a stream, which stands before it and is known when it ends.
const lengthRoom = 1 + binary.MaxVarintLen32

// finish puts the stream into the push. It is compressed while it is warm.
func (b *logBody) finish() {
	if !b.begun {
		return
	}
	b.begun = false
	if b.format == LogJSON {
		if b.raw[len(b.raw)-1] != '[' {
			b.raw = append(b.raw, ',')
		}
		b.raw = append(append(b.raw, b.current...), `]}`...)
		return
	}
	var length [lengthRoom]byte
	length[0] = tag(1, sized)
	n := 1 + binary.PutUvarint(length[1:], uint64(len(b.current)-lengthRoom))
	copy(b.current[lengthRoom-n:], length[:n])
	for i := range b.seams {
		b.seams[i].at -= uint32(lengthRoom - n)
	}
	b.zip.addSeams(b.current[lengthRoom-n:], b.seams)
}

// line adds a line to the stream.
func (b *logBody) line(at int64, text []byte, seams []seam, metadata []logLabel) {
	b.lines++
	b.bytes += int64(len(text))
	if b.format == LogJSON {
		b.lineJSON(at, text, metadata)
		return
	}
	seconds, nanos := uint64(at/1e9), uint64(at%1e9)
	stamp := 1 + varintLen(seconds)
	if nanos > 0 {
		stamp += 1 + varintLen(nanos)
	}
	size := 1 + 1 + stamp + 1 + varintLen(uint64(len(text))) + len(text)
	for i := range metadata {
		n := pairSize(&metadata[i])
		size += 1 + varintLen(uint64(n)) + n
	}
	c := binary.AppendUvarint(append(b.current, tag(2, sized)), uint64(size))
	c = append(c, tag(1, sized), byte(stamp)) // at most 11 bytes
	c = appendVarint(c, 1, seconds)
	if nanos > 0 {
		c = appendVarint(c, 2, nanos)
	}
	c = binary.AppendUvarint(append(c, tag(2, sized)), uint64(len(text)))
	for _, s := range seams {
		b.seams = append(b.seams, seam{uint32(len(c)) + s.at, s.text})
	}
	c = append(c, text...)
	for i := range metadata {
		m := &metadata[i]
		c = binary.AppendUvarint(append(c, tag(3, sized)), uint64(pairSize(m)))
		c = append(binary.AppendUvarint(append(c, tag(1, sized)), uint64(len(m.name))), m.name...)
		c = append(binary.AppendUvarint(append(c, tag(2, sized)), uint64(len(m.value))), m.value...)
	}
	b.current = c
}

func pairSize(l *logLabel) int {
	return 2 + varintLen(uint64(len(l.name))) + len(l.name) + varintLen(uint64(len(l.value))) + len(l.value)
}

func (b *logBody) lineJSON(at int64, text []byte, metadata []logLabel) {
	c := b.current
	if c[len(c)-1] != '[' {
		c = append(c, ',')
	}
	c = append(strconv.AppendInt(append(c, `["`...), at, 10), `",`...)
	c = appendQuoted(c, text)
	if len(metadata) > 0 {
		c = appendObject(append(c, ','), metadata)
	}
	b.current = append(c, ']')
}

func appendObject(b []byte, ls []logLabel) []byte {
	b = append(b, '{')
	for i := range ls {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(append(appendQuoted(b, []byte(ls[i].name)), ':'), []byte(ls[i].value))
	}
	return append(b, '}')
}

// appendQuoted appends a string of JSON. What is no UTF-8 cannot be said in JSON and becomes U+FFFD.
func appendQuoted(b, text []byte) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, text[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			default:
				b = append(b, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(append(b, text[from:i]...), "\uFFFD"...)
			from = i + 1
		}
		i += n
	}
	return append(append(b, text[from:]...), '"')
}
