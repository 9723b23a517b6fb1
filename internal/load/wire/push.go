package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/internal/model"
)

// PushFormat is the form of pushes.
type PushFormat uint8

// The forms: protobuf with snappy, as agents send it, and JSON without compression.
const (
	PushProtobuf PushFormat = iota
	PushJSON
)

var logFormatNames = [...]string{"protobuf", "json"}

// UnmarshalText reads the name of a form. Its error is of class [model.ErrInvalid].
func (f *PushFormat) UnmarshalText(text []byte) error {
	i := slices.Index(logFormatNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%w: format %q: want protobuf or json", model.ErrInvalid, text)
	}
	*f = PushFormat(i)
	return nil
}

// Header returns the header lines that describe bodies. Agents send no Content-Encoding for snappy: the form
// implies it.
func (f PushFormat) Header() string {
	if f == PushJSON {
		return "Content-Type: application/json\r\n"
	}
	return "Content-Type: application/x-protobuf\r\n"
}

// Pushes makes pushes one after the other, and reuses its memory.
type Pushes struct {
	writer  *lines.Writer
	format  PushFormat
	labels  map[int]string // of streams, as the form has them
	raw     []byte         // of JSON
	current []byte         // the stream that is being written
	begun   bool
	zip     snappyPacker
	Lines   int64
	Bytes   int64 // of lines
}

// maxLabelTexts bounds the labels that are cached: those of further streams are written each time.
const maxLabelTexts = 1 << 16

func NewPushes(w *lines.Writer, format PushFormat) *Pushes {
	return &Pushes{writer: w, format: format, labels: map[int]string{}}
}

// Fill makes the push of a node in a window, and returns the compressed body and its size without
// compression.
func (b *Pushes) Fill(window, node int) (body []byte, size int) {
	b.raw, b.begun, b.Lines, b.Bytes = b.raw[:0], false, 0, 0
	if b.zip.Begin(); b.format == PushJSON {
		b.raw = append(b.raw, `{"streams":[`...)
	}
	b.writer.Push(window, node, b)
	b.finish()
	if b.format == PushJSON {
		b.raw = append(b.raw, `]}`...)
		return b.raw, len(b.raw)
	}
	return b.zip.End()
}

// stream begins a stream, which ends the one before.
func (b *Pushes) Stream(stream int) {
	b.finish()
	b.begun = true
	text, ok := b.labels[stream]
	if !ok {
		ls := b.writer.LabelsOf(stream)
		if text = lines.LabelText(ls); b.format == PushJSON {
			text = string(appendObject(nil, ls))
		}
		if len(b.labels) < maxLabelTexts {
			b.labels[stream] = text
		}
	}
	if b.format == PushJSON {
		b.current = append(append(append(b.current[:0], `{"stream":`...), text...), `,"values":[`...)
		return
	}
	b.current = append(slices.Grow(b.current[:0], lengthRoom)[:lengthRoom], LenTag(1))
	b.current = append(protowire.AppendVarint(b.current, uint64(len(text))), text...)
}

// lengthRoom is room for the length of a stream, which precedes it and is known when it ends.
const lengthRoom = 1 + binary.MaxVarintLen32

// finish adds the stream to the push, and compresses it while it is in the CPU cache.
func (b *Pushes) finish() {
	if !b.begun {
		return
	}
	b.begun = false
	if b.format == PushJSON {
		if b.raw[len(b.raw)-1] != '[' {
			b.raw = append(b.raw, ',')
		}
		b.raw = append(append(b.raw, b.current...), `]}`...)
		return
	}
	var length [lengthRoom]byte
	length[0] = LenTag(1)
	n := 1 + binary.PutUvarint(length[1:], uint64(len(b.current)-lengthRoom))
	copy(b.current[lengthRoom-n:], length[:n])
	b.zip.Add(b.current[lengthRoom-n:])
}

// line adds a line to the stream.
func (b *Pushes) Line(at int64, text []byte, metadata []lines.Label) {
	b.Lines++
	b.Bytes += int64(len(text))
	if b.format == PushJSON {
		b.lineJSON(at, text, metadata)
		return
	}
	seconds, nanos := uint64(at/1e9), uint64(at%1e9)
	stamp := 1 + protowire.SizeVarint(seconds)
	if nanos > 0 {
		stamp += 1 + protowire.SizeVarint(nanos)
	}
	size := 1 + 1 + stamp + 1 + protowire.SizeVarint(uint64(len(text))) + len(text)
	for i := range metadata {
		n := pairSize(&metadata[i])
		size += 1 + protowire.SizeVarint(uint64(n)) + n
	}
	c := protowire.AppendVarint(append(b.current, LenTag(2)), uint64(size))
	c = append(c, LenTag(1), byte(stamp)) // at most 11 bytes
	c = AppendVarint(c, 1, seconds)
	if nanos > 0 {
		c = AppendVarint(c, 2, nanos)
	}
	c = protowire.AppendVarint(append(c, LenTag(2)), uint64(len(text)))
	c = append(c, text...)
	for i := range metadata {
		m := &metadata[i]
		c = protowire.AppendVarint(append(c, LenTag(3)), uint64(pairSize(m)))
		c = append(protowire.AppendVarint(append(c, LenTag(1)), uint64(len(m.Name))), m.Name...)
		c = append(protowire.AppendVarint(append(c, LenTag(2)), uint64(len(m.Value))), m.Value...)
	}
	b.current = c
}

func pairSize(l *lines.Label) int {
	return 2 + protowire.SizeVarint(uint64(len(l.Name))) + len(l.Name) + protowire.SizeVarint(uint64(len(l.Value))) + len(l.Value)
}

func (b *Pushes) lineJSON(at int64, text []byte, metadata []lines.Label) {
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

func appendObject(b []byte, ls []lines.Label) []byte {
	b = append(b, '{')
	for i := range ls {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(append(appendQuoted(b, []byte(ls[i].Name)), ':'), []byte(ls[i].Value))
	}
	return append(b, '}')
}

// appendQuoted appends a string of JSON. Invalid UTF-8, which JSON cannot represent, becomes U+FFFD.
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
