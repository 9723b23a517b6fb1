package file

import (
	"fmt"
	"io"

	"github.com/shaledb/shale/internal/store/part/column"
)

// ShowBytes writes bytes at an offset, 12 a line, with their meaning on the first.
func ShowBytes(w io.Writer, indent string, off int64, b []byte, format string, args ...any) {
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

// Annotator is a scan that shows what it reads.
type Annotator struct {
	Out     io.Writer
	Payload []byte
	Scan    column.Scan
	Ints    column.IntDecoder
	Values  column.ValueDecoder
}

// NewAnnotator shows a payload on w.
func NewAnnotator(w io.Writer, payload []byte) *Annotator {
	return &Annotator{Out: w, Payload: payload, Scan: column.Scan{Rest: payload}}
}

// Show runs read and shows what it consumed, with what it returns.
func (a *Annotator) Show(read func() string) {
	before := len(a.Payload) - len(a.Scan.Rest)
	if a.Scan.Bad {
		return
	}
	meaning := read()
	if a.Scan.Bad {
		fmt.Fprintf(a.Out, "  %06d: %s: cut short or out of bounds\n", before, meaning)
		return
	}
	ShowBytes(a.Out, "  ", int64(before), a.Payload[before:len(a.Payload)-len(a.Scan.Rest)], "%s", meaning)
}

// Uvarint shows an unsigned number.
func (a *Annotator) Uvarint(what string) (v uint64) {
	a.Show(func() string { v = a.Scan.Uvarint(); return fmt.Sprintf("%s: %d", what, v) })
	return v
}

// Varint shows a signed number.
func (a *Annotator) Varint(what string) (v int64) {
	a.Show(func() string { v = a.Scan.Varint(); return fmt.Sprintf("%s: %d", what, v) })
	return v
}

// Text shows a length and that many bytes of text.
func (a *Annotator) Text(what string) {
	a.Show(func() string { return fmt.Sprintf("%s: %q", what, a.Scan.Bytes()) })
}

// Raw shows n bytes.
func (a *Annotator) Raw(n uint64, what string) []byte {
	var b []byte
	a.Show(func() string { b = a.Scan.Next(n); return what })
	return b
}

// Column shows a column of n integers.
func (a *Annotator) Column(n int, what string) (xs []int64) {
	if n == 0 {
		return nil
	}
	a.Show(func() string {
		kind := a.Scan.Rest
		xs = a.Ints.Append(nil, &a.Scan, n)
		return fmt.Sprintf("%s: %s: %s", what, column.IntsName(kind), Few(xs))
	})
	return xs
}

// Few spells out the first elements of a slice.
func Few[T any](xs []T) string {
	const most = 6
	if len(xs) <= most {
		return fmt.Sprintf("%v", xs)
	}
	return fmt.Sprintf("%v and %d more", xs[:most], len(xs)-most)
}

// End tells of bytes that were not read, or missing.
func (a *Annotator) End() {
	if err := a.Scan.End("page"); err != nil {
		fmt.Fprintf(a.Out, "  %v\n", err)
	}
}
