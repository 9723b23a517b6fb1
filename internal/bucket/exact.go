package bucket

import (
	"errors"
	"fmt"
	"io"

	"github.com/shaledb/shale/internal/model"
)

// Exact is a reader of exactly as many bytes as were announced. It returns the last byte only after the
// reader below it has proved to end there. So a store that is told the size beforehand never has all bytes of
// an object whose reader turns out to be longer, shorter or broken.
type Exact struct {
	r    io.Reader
	left int64
	err  error
}

// Exactly returns a reader of r, which must have size bytes. A negative size is an error of class invalid.
func Exactly(r io.Reader, size int64) (*Exact, error) {
	if size < 0 {
		return nil, fmt.Errorf("%w: negative size %d", model.ErrInvalid, size)
	}
	return &Exact{r: r, left: size}, nil
}

// Read reads as [io.Reader] says. Too few bytes, or too many, are an error of class invalid.
func (e *Exact) Read(p []byte) (n int, err error) {
	if e.err != nil || len(p) == 0 {
		return 0, e.err
	}
	if e.left <= 1 {
		return e.last(p)
	}
	n, err = e.r.Read(p[:min(int64(len(p)), e.left-1)])
	e.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = e.short()
	}
	e.err = err
	return n, err
}

// last returns the last byte, and the end.
func (e *Exact) last(p []byte) (int, error) {
	var buf [2]byte // one byte more than is left
	n, err := 0, error(nil)
	for n <= int(e.left) && err == nil {
		var m int
		m, err = e.r.Read(buf[n : e.left+1])
		n += m
	}
	switch {
	case n > int(e.left):
		e.err = fmt.Errorf("%w: the reader has more bytes than were announced", model.ErrInvalid)
	case !errors.Is(err, io.EOF):
		e.err = err
	case n < int(e.left):
		e.err = e.short()
	default:
		e.left, e.err = 0, io.EOF
		return copy(p, buf[:n]), io.EOF
	}
	return 0, e.err
}

func (e *Exact) short() error {
	return fmt.Errorf("%w: the reader ended %d bytes before the announced size", model.ErrInvalid, e.left)
}

// Failed returns the error of the reader, if it was not the end. A store may report it in other words, or not
// at all.
func (e *Exact) Failed() error {
	if errors.Is(e.err, io.EOF) {
		return nil
	}
	return e.err
}
