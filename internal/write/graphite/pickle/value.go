package pickle

import "math"

// Kind says what a Value is.
type Kind uint8

// The kinds.
const (
	// Absent is the kind of the zero Value, which no pickle has.
	Absent Kind = iota
	None
	// Number is an integer, a float or a boolean.
	Number
	// Huge is an integer that a float64 does not reach.
	Huge
	// Text is a string of any sort: text or bytes, which are not told apart. It need not be UTF-8.
	Text
	Tuple
	List
)

// String returns the kind as a message says it.
func (k Kind) String() string {
	switch k {
	case None:
		return "None"
	case Number:
		return "a number"
	case Huge:
		return "an integer beyond a float64"
	case Text:
		return "a text"
	case Tuple:
		return "a tuple"
	case List:
		return "a list"
	}
	return "nothing"
}

// Value is something in a pickle. It is valid until its Decoder reads the next one.
type Value struct {
	kind Kind
	n    uint32 // length of a text, elements of a tuple
	// bits are those of a number, or say where the text, the tuple or the list lies.
	bits uint64
}

// Kind returns what the value is.
func (v Value) Kind() Kind { return v.kind }

// Float returns a number, rounded to the nearest float64.
func (v Value) Float() float64 { return math.Float64frombits(v.bits) }

func number(f float64) Value { return Value{kind: Number, bits: math.Float64bits(f)} }

// unescaped marks a text that lies in the decoder's own memory, not in the pickle.
const unescaped = 1 << 63

// list is a list that may still grow. It consists of runs of the decoder's elements, for what is appended at one time
// lies together, and between two times there may be other things. Runs are numbered from 1.
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

// Len returns the number of elements of a tuple or list, and 0 for all else.
func (d *Decoder) Len(v Value) int {
	switch v.kind {
	case Tuple:
		return int(v.n)
	case List:
		return int(d.lists[v.bits].n)
	}
	return 0
}

// Elements goes through the elements of a tuple or list; there are none in all else.
func (d *Decoder) Elements(v Value) Elements {
	switch v.kind {
	case Tuple:
		return Elements{d: d, at: uint32(v.bits), end: uint32(v.bits) + v.n}
	case List:
		return Elements{d: d, next: d.lists[v.bits].first}
	}
	return Elements{d: d}
}

// Elements are the elements of a tuple or list that are still to come.
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
