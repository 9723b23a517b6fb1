package pickle

import "unsafe"

// room makes room for n more elements in s and reserves the memory for them.
func room[T any](d *Decoder, s []T, n int) ([]T, error) {
	if len(s)+n <= cap(s) {
		return s, nil
	}
	size := max(2*cap(s), len(s)+n, 64)
	if err := d.Reserve((size - cap(s)) * int(unsafe.Sizeof(*new(T)))); err != nil {
		return s, err
	}
	grown := make([]T, len(s), size)
	copy(grown, s)
	return grown, nil
}

func (d *Decoder) push(v Value) (err error) {
	if len(d.stack) == cap(d.stack) {
		if d.stack, err = room(d, d.stack, 1); err != nil {
			return err
		}
	}
	d.stack = append(d.stack, v)
	return nil
}

func (d *Decoder) mark() error {
	if d.depth == maxMarks {
		return d.fail("more than %d nested MARKs", maxMarks)
	}
	d.marks[d.depth] = d.fence
	d.depth++
	d.fence = len(d.stack)
	return nil
}

// unmark removes the last mark and returns how many values are above it.
func (d *Decoder) unmark() (n int, err error) {
	if d.depth == 0 {
		return 0, d.fail("no MARK on the stack")
	}
	n = len(d.stack) - d.fence
	d.depth--
	d.fence = d.marks[d.depth]
	return n, nil
}

// take moves the topmost n values from the stack to the elements and returns the index of the first.
func (d *Decoder) take(n int) (begin int, err error) {
	if len(d.stack)-d.fence < n {
		return 0, d.fail("expected %d values on the stack, got %d", n, len(d.stack)-d.fence)
	}
	if d.elements, err = room(d, d.elements, n); err != nil {
		return 0, err
	}
	begin = len(d.elements)
	from := len(d.stack) - n
	d.elements = append(d.elements, d.stack[from:]...)
	d.stack = d.stack[:from]
	return begin, nil
}

func (d *Decoder) tuple(n int) error {
	begin, err := d.take(n)
	if err != nil {
		return err
	}
	return d.push(Value{kind: Tuple, n: uint32(n), bits: uint64(begin)})
}

// dict pushes a dict of the topmost n values, which are keys and values in turn.
func (d *Decoder) dict(n int) error {
	if n%2 != 0 {
		return d.fail("a dict of %d values: expected a value for each key", n)
	}
	if err := d.list(n); err != nil {
		return err
	}
	d.stack[len(d.stack)-1].kind = Dict
	return nil
}

// set moves the topmost n values, which are keys and values in turn, to the dict below them.
func (d *Decoder) set(n int) error {
	at := len(d.stack) - n - 1
	if at < d.fence || d.stack[at].kind != Dict {
		return d.fail("SETITEM or SETITEMS to a value that is not a dict")
	}
	if n%2 != 0 {
		return d.fail("SETITEMS of %d values: expected a value for each key", n)
	}
	return d.extend(d.stack[at], n)
}

// list pushes a list of the topmost n values.
func (d *Decoder) list(n int) (err error) {
	if len(d.stack)-d.fence < n {
		return d.fail("expected %d values on the stack, got %d", n, len(d.stack)-d.fence)
	}
	if d.lists, err = room(d, d.lists, 1); err != nil {
		return err
	}
	d.lists = append(d.lists, list{})
	made := Value{kind: List, bits: uint64(len(d.lists) - 1)}
	if err := d.extend(made, n); err != nil {
		return err
	}
	return d.push(made)
}

// append moves the topmost n values to the list below them.
func (d *Decoder) append(n int) error {
	at := len(d.stack) - n - 1
	if at < d.fence || d.stack[at].kind != List {
		return d.fail("APPEND or APPENDS to a value that is not a list")
	}
	return d.extend(d.stack[at], n)
}

// extend moves the topmost n values to the end of a list.
func (d *Decoder) extend(v Value, n int) error {
	if n == 0 {
		return nil
	}
	begin, err := d.take(n)
	if err != nil {
		return err
	}
	l := &d.lists[v.bits]
	l.n += uint32(n)
	if l.last != 0 {
		if last := &d.runs[l.last-1]; last.end == uint32(begin) {
			last.end += uint32(n)
			return nil
		}
	}
	if d.runs, err = room(d, d.runs, 1); err != nil {
		return err
	}
	d.runs = append(d.runs, run{begin: uint32(begin), end: uint32(begin + n)})
	if l.last == 0 {
		l.first = uint32(len(d.runs))
	} else {
		d.runs[l.last-1].next = uint32(len(d.runs))
	}
	l.last = uint32(len(d.runs))
	return nil
}

func (d *Decoder) put(size int) error {
	i, err := d.integer(size)
	if err != nil {
		return err
	}
	return d.store(i)
}

// store puts the topmost value into the memo at index i. Writers number from 0 or 1, so an index never
// exceeds the length of the pickle.
func (d *Decoder) store(i uint64) (err error) {
	if len(d.stack) == d.fence {
		return d.fail("PUT, BINPUT or MEMOIZE without a value")
	}
	if i > uint64(len(d.in)) {
		return d.fail("the memo index %d is too large", i)
	}
	if n := int(i) + 1 - len(d.memo); n > 0 {
		if d.memo, err = room(d, d.memo, n); err != nil {
			return err
		}
		was := len(d.memo)
		d.memo = d.memo[:i+1]
		clear(d.memo[was:])
	}
	d.memo[i] = d.stack[len(d.stack)-1]
	return nil
}

func (d *Decoder) get(size int) error {
	i, err := d.integer(size)
	if err != nil {
		return err
	}
	return d.load(i)
}

func (d *Decoder) load(i uint64) error {
	if i >= uint64(len(d.memo)) || d.memo[i].kind == Absent {
		return d.fail("the memo has no value at index %d", i)
	}
	return d.push(d.memo[i])
}
