package part

import (
	"fmt"
	"io"
)

// showBytes writes bytes at an offset, 12 a line, with their meaning on the first.
func showBytes(w io.Writer, indent string, off int64, b []byte, format string, args ...any) {
	const perLine = 12
	meaning := fmt.Sprintf(format, args...)
	for first := true; first || len(b) > 0; first = false {
		n := min(len(b), perLine)
		fmt.Fprintf(w, "%s%06d: %-36s%s\n", indent, off, fmt.Sprintf("% x", b[:n]), prefixed(first, meaning))
		b, off = b[n:], off+int64(n)
	}
}

func prefixed(first bool, meaning string) string {
	if !first {
		return "."
	}
	return "# " + meaning
}

// annotator is a scan that shows what it reads.
type annotator struct {
	w       io.Writer
	payload []byte
	s       scan
	ints    intDecoder
	values  valueDecoder
}

func newAnnotator(w io.Writer, payload []byte) *annotator {
	return &annotator{w: w, payload: payload, s: scan{b: payload}}
}

// show runs read and shows what it consumed, with what it returns.
func (a *annotator) show(read func() string) {
	before := len(a.payload) - len(a.s.b)
	if a.s.bad {
		return
	}
	meaning := read()
	if a.s.bad {
		fmt.Fprintf(a.w, "  %06d: %s: cut short or out of bounds\n", before, meaning)
		return
	}
	showBytes(a.w, "  ", int64(before), a.payload[before:len(a.payload)-len(a.s.b)], "%s", meaning)
}

func (a *annotator) uvarint(what string) (v uint64) {
	a.show(func() string { v = a.s.uvarint(); return fmt.Sprintf("%s: %d", what, v) })
	return v
}

func (a *annotator) varint(what string) (v int64) {
	a.show(func() string { v = a.s.varint(); return fmt.Sprintf("%s: %d", what, v) })
	return v
}

func (a *annotator) text(what string) {
	a.show(func() string { return fmt.Sprintf("%s: %q", what, a.s.bytes()) })
}

func (a *annotator) raw(n uint64, what string) []byte {
	var b []byte
	a.show(func() string { b = a.s.take(n); return what })
	return b
}

// column shows a column of n integers.
func (a *annotator) column(n int, what string) (xs []int64) {
	if n == 0 {
		return nil
	}
	a.show(func() string {
		kind := a.s.b
		xs = a.ints.append(nil, &a.s, n)
		return fmt.Sprintf("%s: %s: %s", what, intsName(kind), few(xs))
	})
	return xs
}

// few spells out the first elements of a slice.
func few[T any](xs []T) string {
	const most = 6
	if len(xs) <= most {
		return fmt.Sprintf("%v", xs)
	}
	return fmt.Sprintf("%v and %d more", xs[:most], len(xs)-most)
}

// end tells of bytes that were not read, or missing.
func (a *annotator) end() {
	if err := a.s.end("page"); err != nil {
		fmt.Fprintf(a.w, "  %v\n", err)
	}
}
