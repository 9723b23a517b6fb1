package graphite

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/write/graphite/pickle"
)

// items feeds rows out of a list of points in a pickle: each is a path, and a pair of its time and value. Lists and
// tuples are not told apart.
type items struct {
	p *parser
	d *pickle.Decoder
	e pickle.Elements
	// n items are read, and the others when n is set again.
	n int
}

// feed reads items into c.
func (it *items) feed(c *chunk) (more bool) {
	for it.n > 0 && !c.full() {
		v, _ := it.e.Next()
		it.n--
		it.p.counts.lines++
		it.item(v, c)
	}
	return it.n > 0
}

// The bounds of a slice of items: those for which memory is asked for at one time.
const (
	sliceItems = 4096
	sliceBytes = 256 << 10
)

// slice returns how many of the next items make a slice, and the bytes that their rows take at most.
func (it *items) slice(most int) (n int, bytes int64) {
	e := it.e
	for n < min(most, sliceItems) && bytes < sliceBytes {
		v, _ := e.Next()
		n++
		bytes += rowBytes
		if path, _, ok := it.d.Pair(v); ok && path.Kind() == pickle.Text {
			bytes += int64(min(len(it.d.Text(path)), it.p.maxLine))
		}
	}
	return n, bytes
}

// item adds the row of an item, or counts what is wrong with it.
func (it *items) item(v pickle.Value, c *chunk) {
	path, point, ok := it.d.Pair(v)
	if !ok {
		it.bad(v, "it is not a path and a pair")
		return
	}
	stamp, value, ok := it.d.Pair(point)
	if !ok {
		it.bad(v, "it has not a pair of time and value")
		return
	}
	if path.Kind() != pickle.Text {
		it.bad(v, "the path is no text")
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
		it.p.counts.nan++
		return
	}
	t, ok := it.p.time(seconds)
	if !ok {
		it.p.counts.badTime++
		it.p.complain(it.describe(v), "the time is not between the years 1677 and 2262; it must be in seconds")
		return
	}
	name := it.d.Text(path)
	switch {
	case len(name) > 0 && plainEnd(name) == len(name) && name[0] != '~' && len(name) <= it.p.maxLine:
		c.addName(name, it.p.keys.NameKey(name), t, math.Float64bits(f))
	case len(name) > it.p.maxLine:
		it.bad(v, "the path is too long")
	case !utf8.Valid(name):
		it.bad(v, "the path is not UTF-8")
	default:
		if why := it.p.series(name, t, math.Float64bits(f), c); why != "" {
			it.bad(v, why)
		}
	}
}

// number reads a number, or a text that is one, as Python's float does.
func (it *items) number(v pickle.Value) (f float64, ok bool) {
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

func (it *items) bad(v pickle.Value, why string) {
	it.p.bad(it.describe(v), why)
}

// describe writes an item for the log. It is valid until the next item.
func (it *items) describe(v pickle.Value) []byte {
	it.p.scratch = it.appendValue(it.p.scratch[:0], v, 3)
	return it.p.scratch
}

// maxShown is how many bytes of a text are shown, and how many elements of a list.
const (
	maxShown         = 200
	maxShownElements = 4
)

// appendValue writes a value much as Python would. What lies deeper than a point's parts is left out.
func (it *items) appendValue(b []byte, v pickle.Value, depth int) []byte {
	switch v.Kind() {
	case pickle.Number:
		if f := v.Float(); math.Abs(f) < 1e15 {
			return strconv.AppendFloat(b, f, 'f', -1, 64) // times are to be read
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

func (it *items) appendElements(b []byte, v pickle.Value, depth int) []byte {
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

// appendQuoted is strconv.AppendQuote for bytes, of which it allocates no string.
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
