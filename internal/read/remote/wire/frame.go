package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/shaledb/shale/internal/model"
)

// Kind is the kind of a frame.
type Kind byte

// The kinds. An answer is one Head, any number of the others, and one Trailer or Error, which ends it.
const (
	Head    Kind = 1 // JSON, see [Answer]
	Record  Kind = 2 // a journal record
	Trailer Kind = 3 // JSON, see [End]
	Error   Kind = 4 // JSON, see [Failure]
	Strings Kind = 5 // names or values
	Chunks  Kind = 6 // the chunks of the series of the record before it
	Dropped Kind = 7 // a journal record of lines that were left out, without their bytes
)

const (
	headerBytes = 9
	// MaxFrame is the most bytes of a frame after its header: those of the largest journal record.
	MaxFrame = 128 << 20
	// maxJSON is the most bytes of a frame that holds JSON.
	maxJSON = 1 << 20
	// TargetBytes is from which size on a writer ends a frame.
	TargetBytes = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of a frame: of its kind, the last byte of the header, and of its body.
func checksum(header, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[headerBytes-1:headerBytes], castagnoli), castagnoli, body)
}

// Writer writes frames.
type Writer struct {
	w      io.Writer
	header [headerBytes]byte
}

// NewWriter returns a Writer.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes a frame.
func (w *Writer) Write(k Kind, body []byte) error {
	if len(body) > MaxFrame {
		return fmt.Errorf("%w: a frame of %d bytes, and the limit is %d", model.ErrLimit, len(body), MaxFrame)
	}
	binary.LittleEndian.PutUint32(w.header[:], uint32(len(body)))
	w.header[8] = byte(k)
	binary.LittleEndian.PutUint32(w.header[4:], checksum(w.header[:], body))
	if _, err := w.w.Write(w.header[:]); err != nil {
		return err
	}
	_, err := w.w.Write(body)
	return err
}

// WriteJSON writes a frame that holds JSON.
func (w *Writer) WriteJSON(k Kind, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.Write(k, body)
}

// ErrDamaged marks a stream that does not have the form that it must have. It is of class transient: the rows
// themselves may be good, and another attempt may succeed.
var ErrDamaged = fmt.Errorf("%w: damaged stream", model.ErrTransient)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// Reader reads frames. Before it takes memory for one, it asks for it.
type Reader struct {
	r    *bufio.Reader
	take func(bytes int64) error
	buf  []byte
	// ended is set after the frame that ends an answer.
	ended  bool
	header [headerBytes]byte
}

// NewReader returns a Reader. take charges the memory of frames and is not told when it is free again: see
// [Reader.Bytes].
func NewReader(r io.Reader, take func(bytes int64) error) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 32<<10), take: take}
}

// Bytes returns the memory that was charged.
func (r *Reader) Bytes() int64 { return int64(cap(r.buf)) }

// Next returns the next frame. Its body is valid until the next call. A [Failure] is returned as an error,
// and so is a stream that ends without Trailer or Error.
func (r *Reader) Next() (Kind, []byte, error) {
	if r.ended {
		return 0, nil, damaged("a frame was expected after the last one")
	}
	header := r.header[:]
	if _, err := io.ReadFull(r.r, header); err != nil {
		return 0, nil, cut(err)
	}
	size, sum, kind := binary.LittleEndian.Uint32(header), binary.LittleEndian.Uint32(header[4:]), Kind(header[8])
	most := uint32(MaxFrame)
	switch kind {
	case Head, Trailer, Error:
		most = maxJSON
	case Record, Strings, Chunks, Dropped:
	default:
		return 0, nil, damaged("frame of unknown kind %d", kind)
	}
	if size > most {
		return 0, nil, damaged("a frame of %d bytes, and the limit is %d", size, most)
	}
	if err := r.grow(int(size)); err != nil {
		return 0, nil, err
	}
	body := r.buf[:size]
	if _, err := io.ReadFull(r.r, body); err != nil {
		return 0, nil, cut(err)
	}
	if checksum(header, body) != sum {
		return 0, nil, damaged("a frame of kind %d has a wrong checksum", kind)
	}
	r.ended = kind == Trailer || kind == Error
	if kind == Error {
		return 0, nil, failure(body)
	}
	return kind, body, nil
}

// grow makes the buffer large enough, and charges what it takes.
func (r *Reader) grow(size int) error {
	if size <= cap(r.buf) {
		return nil
	}
	size = max(size, 2*cap(r.buf), TargetBytes)
	if err := r.take(int64(size - cap(r.buf))); err != nil {
		return err
	}
	r.buf = make([]byte, size)
	return nil
}

// cut describes a stream that ends too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it ended before its last frame")
	}
	return fmt.Errorf("%w: %w", model.ErrTransient, err)
}

// NextJSON reads a frame of a kind, which holds JSON.
func (r *Reader) NextJSON(want Kind, v any) error {
	kind, body, err := r.Next()
	if err != nil {
		return err
	}
	if kind != want {
		return damaged("expected a frame of kind %d, got %d", want, kind)
	}
	return ParseJSON(body, v)
}

// ParseJSON decodes the body of a frame.
func ParseJSON(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return damaged("%v", err)
	}
	return nil
}

// AppendString appends a string to the body of a frame of strings.
func AppendString(dst, s []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// EachString calls do with the strings of a frame.
func EachString(body []byte, do func(s []byte) error) error {
	for len(body) > 0 {
		n, used := binary.Uvarint(body)
		if used <= 0 || n > uint64(len(body)-used) {
			return damaged("a string is cut short")
		}
		end := used + int(n)
		if err := do(body[used:end:end]); err != nil {
			return err
		}
		body = body[end:]
	}
	return nil
}

// Ended reports whether the last frame of the answer was read.
func (r *Reader) Ended() bool { return r.ended }
