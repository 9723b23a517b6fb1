package pickle

import "math"

// Kind is the type of a Value.
type Kind uint8

// The kinds.
const (
	// Absent is the kind of the zero Value, which does not occur in a pickle.
	Absent Kind = iota
	None
	// Number is an integer, a float or a boolean.
	Number
	// Huge is an integer beyond the range of float64.
	Huge
	// Text is a str or bytes object; the two are not distinguished. It need not be valid UTF-8.
	Text
	Tuple
	List
	// Dict has keys and values. Its Elements are keys and values in turn.
	Dict
)

// String returns the kind as it appears in error texts.
func (k Kind) String() string {
	switch k {
	case None:
		return "None"
	case Number:
		return "a number"
	case Huge:
		return "an integer beyond the range of float64"
	case Text:
		return "a string"
	case Tuple:
		return "a tuple"
	case List:
		return "a list"
	case Dict:
		return "a dict"
	}
	return "nothing"
}

// Value is a decoded value. It is valid until its Decoder decodes the next pickle.
type Value struct {
	kind Kind
	n    uint32 // bytes of a text, elements of a tuple
	// bits hold a number's float64, or the position of the text, tuple or list.
	bits uint64
}

// Kind returns the type of the value.
func (v Value) Kind() Kind { return v.kind }

// Float returns a number, rounded to the nearest float64.
func (v Value) Float() float64 { return math.Float64frombits(v.bits) }

func number(f float64) Value { return Value{kind: Number, bits: math.Float64bits(f)} }

// unescaped marks a text that is stored in the decoder's own memory, not in the pickle.
const unescaped = 1 << 63

// list is a list that may still grow. Its elements are a linked list of segments of the decoder's
// elements, because other values may be stored between two appends. Segments are numbered from 1.
type list struct {
	first, last uint32
	n           uint32
}

type run struct{ begin, end, next uint32 }

// Text returns the bytes of a text. They alias the pickle or the decoder's memory.
func (d *Decoder) Text(v Value) []byte {
	from := d.in
	if v.bits&unescaped != 0 {
		from = d.text
	}
	at := v.bits &^ unescaped
	return from[at : at+uint64(v.n) : at+uint64(v.n)]
}

// Get returns the value of a key of a dict, which is a text. As in Python, the last one counts.
func (d *Decoder) Get(v Value, key string) (found Value, ok bool) {
	if v.kind != Dict {
		return Value{}, false
	}
	e := d.Elements(v)
	for k, more := e.Next(); more; k, more = e.Next() {
		value, _ := e.Next()
		if k.kind == Text && string(d.Text(k)) == key {
			found, ok = value, true
		}
	}
	return found, ok
}

// Len returns the number of elements of a tuple, list or dict, and 0 for other values.
func (d *Decoder) Len(v Value) int {
	switch v.kind {
	case Tuple:
		return int(v.n)
	case List, Dict:
		return int(d.lists[v.bits].n)
	}
	return 0
}

// Elements returns an iterator over the elements of a tuple, list or dict. It is empty for other values.
func (d *Decoder) Elements(v Value) Elements {
	switch v.kind {
	case Tuple:
		return Elements{d: d, at: uint32(v.bits), end: uint32(v.bits) + v.n}
	case List, Dict:
		return Elements{d: d, next: d.lists[v.bits].first}
	}
	return Elements{d: d}
}

// Elements iterates over the elements of a tuple or list.
type Elements struct {
	d             *Decoder
	at, end, next uint32
}

// Next returns the next element, if there is one.
func (e *Elements) Next() (v Value, ok bool) {
	for e.at == e.end {
		if e.next == 0 {
			return Value{}, false
		}
		r := e.d.runs[e.next-1]
		e.at, e.end, e.next = r.begin, r.end, r.next
	}
	v = e.d.elements[e.at]
	e.at++
	return v, true
}

// Pair returns both elements of a tuple or list of two.
func (d *Decoder) Pair(v Value) (a, b Value, ok bool) {
	if v.kind == Tuple {
		if v.n != 2 {
			return Value{}, Value{}, false
		}
		return d.elements[v.bits], d.elements[v.bits+1], true
	}
	if d.Len(v) != 2 {
		return Value{}, Value{}, false
	}
	e := d.Elements(v)
	a, _ = e.Next()
	b, _ = e.Next()
	return a, b, true
}
