package lines

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Codec is the codec of pages of log lines, as stored.
const Codec = file.FirstOwnCodec

// fieldCoders and fieldDecoders keep the memory of coders, about that of a few pages.
var (
	fieldCoders   = sync.Pool{New: func() any { return &coder{ints: column.IntCoder{Dense: true}} }}
	fieldDecoders = sync.Pool{New: func() any { return &decoder{} }}
)

// Seal appends the stored form of a page of lines. Line i ends at ends[i], counted from begin. Seal adds
// the items of the lines to items, unless that is nil.
func Seal(dst, lines []byte, begin uint32, ends []uint32, items *Items) ([]byte, error) {
	if len(lines) > maxFieldBytes && items == nil {
		return file.SealPage(dst, lines, file.CodecZstd)
	}
	at := len(dst)
	head := binary.AppendUvarint(append(dst, Codec), uint64(len(lines)))
	c := fieldCoders.Get().(*coder)
	out, ok := c.append(head, lines, begin, ends, items)
	c.items = nil
	fieldCoders.Put(c)
	if !ok || !file.WorthCoding(len(out)-len(head), len(lines)) {
		return file.SealPage(dst, lines, file.CodecZstd)
	}
	return file.AppendChecksum(out, at), nil
}

// AddLines adds the items of lines. Line i ends at ends[i], counted from begin.
func (s *Items) AddLines(b []byte, begin uint32, ends []uint32) {
	c := fieldCoders.Get().(*coder)
	c.Gather(b, begin, ends, s)
	c.items = nil
	fieldCoders.Put(c)
}

// DecodePage returns the payload of a page of any section from its stored bytes. The payload may alias
// stored. Its size is checked before memory is allocated.
func DecodePage(stored []byte) ([]byte, error) { return decodePage(stored, file.MaxPageBytes) }

func decodePage(stored []byte, limit int) ([]byte, error) {
	codec, raw, b, err := file.OpenEnvelope(stored, limit)
	if err != nil {
		return nil, err
	}
	if codec == Codec {
		return decodeLines(b, raw, 0, raw)
	}
	return file.OpenBody(codec, raw, b)
}

// decodeLines returns the last n of raw bytes of a page of lines: all lines but the first skip.
func decodeLines(b []byte, raw, skip, n int) ([]byte, error) {
	d := fieldDecoders.Get().(*decoder)
	out, err := d.decode(b, raw, skip, n)
	if d.size() <= keepBytes {
		fieldDecoders.Put(d)
	}
	return out, err
}

// Tail describes the end of a page of lines that is wanted: the last Bytes of its Total bytes, which are
// all lines but the first Skip.
type Tail struct{ Skip, Bytes, Total int }

// Of returns the tail of a payload.
func (t Tail) Of(payload []byte) ([]byte, error) {
	if len(payload) != t.Total || t.Bytes > t.Total {
		return nil, column.Corrupt("page of lines: %d bytes, want %d", len(payload), t.Total)
	}
	return payload[t.Total-t.Bytes:], nil
}

// Decode returns the tail of the payload of a page of lines from its stored bytes. It does not alias stored.
func (t Tail) Decode(stored []byte) ([]byte, error) {
	codec, raw, b, err := file.OpenEnvelope(stored, file.MaxPageBytes)
	if err != nil {
		return nil, err
	}
	if codec == Codec {
		if raw != t.Total || t.Bytes > raw {
			return nil, column.Corrupt("page of lines: %d bytes, want %d", raw, t.Total)
		}
		return decodeLines(b, raw, t.Skip, t.Bytes)
	}
	payload, err := file.OpenBody(codec, raw, b)
	if err != nil {
		return nil, err
	}
	end, err := t.Of(payload)
	return bytes.Clone(end), err // a cache holds and counts only these bytes
}
