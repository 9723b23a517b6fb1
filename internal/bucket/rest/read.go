package rest

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Range is a range of bytes to ask a store for. HTTP has no empty range, so for one it asks for a byte before
// its place, which proves that the object reaches there.
type Range struct {
	// First and Last are positions in the object, as in the header Range.
	First, Last int64
	off, n      int64
}

// NewRange returns the range to ask for to get n bytes from off.
func NewRange(off, n int64) (Range, error) {
	if off < 0 || n < 0 || n > math.MaxInt64-off {
		return Range{}, fmt.Errorf("%w: %d bytes from %d are not a range", model.ErrInvalid, n, off)
	}
	r := Range{First: off, Last: off + n - 1, off: off, n: n}
	if n == 0 {
		r.First = max(0, off-1)
		r.Last = r.First
	}
	return r, nil
}

// Header is the value of the header Range.
func (r Range) Header() string { return fmt.Sprintf("bytes=%d-%d", r.First, r.Last) }

// EmptyObject reports whether a refusal means that the range is the empty one at the start of an empty
// object.
func (r Range) EmptyObject(err error) bool {
	var refusal *Refusal
	return r.off == 0 && r.n == 0 && errors.As(err, &refusal) && refusal.Status == http.StatusRequestedRangeNotSatisfiable
}

// Read reads the body of the response with its header Content-Range. It closes the body.
func (r Range) Read(body io.ReadCloser, contentRange string) (_ []byte, err error) {
	defer func() { err = errors.Join(err, body.Close()) }()
	if r.n == 0 && r.off == 0 {
		return []byte{}, nil // the object is there, which is enough
	}
	first, last, size, err := parseContentRange(contentRange)
	if err != nil {
		return nil, err
	}
	if size >= 0 && r.off+r.n > size {
		return nil, fmt.Errorf("%w: %d bytes from %d of an object of %d bytes", model.ErrInvalid, r.n, r.off, size)
	}
	if first != r.First || last != r.Last {
		return nil, fmt.Errorf("%w: the store returned bytes %d to %d instead of %d to %d", model.ErrTransient, first, last, r.First, r.Last)
	}
	if r.n == 0 {
		return []byte{}, nil
	}
	return readAll(body, r.n)
}

// parseContentRange reads "bytes 0-4/10"; the size is -1 if it is "*". A response without this header is one
// with the whole object: the store has ignored the range.
func parseContentRange(text string) (first, last, size int64, err error) {
	if text == "" {
		return 0, 0, 0, fmt.Errorf("%w: the store ignored the range and returned the whole object", model.ErrInvalid)
	}
	bad := fmt.Errorf("%w: the store returned the header Content-Range: %q", model.ErrInvalid, clip(text))
	span, total, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	from, to, ok2 := strings.Cut(span, "-")
	if !ok || !ok2 {
		return 0, 0, 0, bad
	}
	if size = -1; total != "*" {
		if size, err = strconv.ParseInt(total, 10, 64); err != nil || size < 0 {
			return 0, 0, 0, bad
		}
	}
	if first, err = strconv.ParseInt(from, 10, 64); err != nil {
		return 0, 0, 0, bad
	}
	if last, err = strconv.ParseInt(to, 10, 64); err != nil || first < 0 || last < first {
		return 0, 0, 0, bad
	}
	return first, last, size, nil
}

// ReadWhole reads the body of a response with a whole object, and closes it. length is that of the header
// Content-Length; -1: there is none.
func ReadWhole(body io.ReadCloser, length int64) (_ []byte, err error) {
	defer func() { err = errors.Join(err, body.Close()) }()
	switch {
	case length < 0:
		return nil, fmt.Errorf("%w: the store returned an object without its length", model.ErrInvalid)
	case length > maxWhole:
		return nil, fmt.Errorf("%w: the object has %d bytes; at most %d are read at once", model.ErrInvalid, length, maxWhole)
	}
	return readAll(body, length)
}

// maxWhole bounds what a lying header makes the process allocate. Objects that are read whole are records
// of a few MiB.
const maxWhole = 1 << 30

// readAll reads n bytes, after which the body must end.
func readAll(body io.Reader, n int64) ([]byte, error) {
	data := make([]byte, n)
	got, err := io.ReadFull(body, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%w: the response is truncated: %d of %d bytes", model.ErrTransient, got, n)
	}
	if err != nil {
		return nil, err
	}
	if extra, err := io.Copy(io.Discard, io.LimitReader(body, 1)); err != nil || extra > 0 {
		return nil, errors.Join(err, fmt.Errorf("%w: the response is longer than the %d bytes that it announced", model.ErrTransient, n))
	}
	return data, nil
}
