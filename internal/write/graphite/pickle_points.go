package graphite

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

// pickledPoints feeds rows from a pickled list of points. A point is a pair of a path and a pair of time and
// value. Each may be a list or a tuple.
type pickledPoints struct {
	p *parser
	d *pickle.Decoder
	e pickle.Elements
	// n is how many more points feed reads.
	n int
}

// left returns how many of the points of a slice have not been read.
func (it *pickledPoints) left() int { return it.n }

// take makes feed read n more points.
func (it *pickledPoints) take(n int) { it.n = n }

// feed reads points into c.
func (it *pickledPoints) feed(c *chunk) (more bool) {
	for it.n > 0 && !c.full() {
		v, _ := it.e.Next()
		it.n--
		it.p.counts.lines++
		it.add(v, c)
	}
	return it.n > 0
}

// slicePoints and sliceBytes bound the points for which memory is reserved at one time.
const (
	slicePoints = 4096
	sliceBytes  = 256 << 10
)

// nextSlice returns how many of the next points, at most most, share one reservation, and the most bytes
// that their rows need.
func (it *pickledPoints) nextSlice(most int) (n int, bytes int64) {
	e := it.e
	for n < min(most, slicePoints) && bytes < sliceBytes {
		v, _ := e.Next()
		n++
		bytes += rowBytes
		if path, _, ok := it.d.Pair(v); ok && path.Kind() == pickle.Text {
			bytes += int64(min(len(it.d.Text(path)), it.p.maxLine))
		}
	}
	return n, bytes
}

// add adds the row of a point, or counts what is wrong with it.
func (it *pickledPoints) add(v pickle.Value, c *chunk) {
	path, point, ok := it.d.Pair(v)
	if !ok {
		it.bad(v, "the point is not a pair of path and (time, value)")
		return
	}
	stamp, value, ok := it.d.Pair(point)
	if !ok {
		it.bad(v, "the second half of the point is not a pair of time and value")
		return
	}
	if path.Kind() != pickle.Text {
		it.bad(v, "the path is not a string")
		return
	}
	f, ok := it.number(value)
	if !ok {
		it.bad(v, "the value is not a number")
		return
	}
	seconds, ok := it.number(stamp)
	if !ok || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		it.bad(v, "the time is not a number")
		return
	}
	if math.IsNaN(f) {
		it.p.nan(it.describe(v))
		return
	}
	t, ok := it.p.time(seconds)
	if !ok {
		it.p.counts.badTime++
		it.p.reportBad(it.describe(v), badTime)
		return
	}
	if why := it.p.pathPoint(it.d.Text(path), t, math.Float64bits(f), c); why != "" {
		it.bad(v, why)
	}
}

// pathPoint adds the row of a point with a path that may have any bytes. It returns a text about a path that
// has no series, or "".
func (p *parser) pathPoint(path []byte, t int64, bits uint64, c *chunk) (why string) {
	switch {
	case len(path) > p.maxLine:
		return "the path is too long"
	case !utf8.Valid(path):
		return "the path is not valid UTF-8"
	default:
		return p.point(path, t, bits, c)
	}
}

// number reads a number, or a string that Python's float accepts.
func (it *pickledPoints) number(v pickle.Value) (f float64, ok bool) {
	switch v.Kind() {
	case pickle.Number:
		return v.Float(), true
	case pickle.Text:
		tok, rest := token(it.d.Text(v))
		if more, _ := token(rest); len(more) > 0 || len(tok) == 0 {
			return 0, false
		}
		return number(tok, &it.p.scratch)
	}
	return 0, false
}

func (it *pickledPoints) bad(v pickle.Value, why string) {
	it.p.bad(it.describe(v), why)
}

// describe formats a point for the log. The result is valid until the next point.
func (it *pickledPoints) describe(v pickle.Value) []byte {
	it.p.scratch = it.appendValue(it.p.scratch[:0], v, 3)
	return it.p.scratch
}

// maxShown bounds the bytes of a string in the log, and maxShownElements the elements of a list.
const (
	maxShown         = 200
	maxShownElements = 4
)

// appendValue formats a value much as Python would. It leaves out what is nested deeper than the parts
// of a point.
func (it *pickledPoints) appendValue(b []byte, v pickle.Value, depth int) []byte {
	switch v.Kind() {
	case pickle.Number:
		if f := v.Float(); math.Abs(f) < 1e15 {
			return strconv.AppendFloat(b, f, 'f', -1, 64) // keeps times readable
		}
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 64)
	case pickle.Text:
		text := it.d.Text(v)
		if len(text) <= maxShown {
			return appendQuoted(b, text)
		}
		return append(appendQuoted(b, text[:maxShown]), "..."...)
	case pickle.Tuple, pickle.List:
		if depth > 0 {
			return it.appendElements(b, v, depth-1)
		}
	}
	return append(b, v.Kind().String()...)
}

func (it *pickledPoints) appendElements(b []byte, v pickle.Value, depth int) []byte {
	brackets := "()"
	if v.Kind() == pickle.List {
		brackets = "[]"
	}
	b = append(b, brackets[0])
	e := it.d.Elements(v)
	for i := range it.d.Len(v) {
		if i > 0 {
			b = append(b, ", "...)
		}
		if i == maxShownElements {
			b = append(b, "..."...)
			break
		}
		el, _ := e.Next()
		b = it.appendValue(b, el, depth)
	}
	return append(b, brackets[1])
}

// appendQuoted is strconv.AppendQuote for bytes, without allocating a string.
func appendQuoted(b, text []byte) []byte {
	b = append(b, '\'')
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1 || r < ' ' || r == 0x7f:
			const digits = "0123456789abcdef"
			b = append(b, '\\', 'x', digits[text[0]>>4], digits[text[0]&15])
		case r == '\'' || r == '\\':
			b = append(b, '\\', text[0])
		default:
			b = append(b, text[:n]...)
		}
		text = text[n:]
	}
	return append(b, '\'')
}
