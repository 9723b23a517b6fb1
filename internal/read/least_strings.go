package read

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// leastStrings collects distinct strings; with a limit, only the least ones. Sources emit most of their
// strings in order, so it keeps sorted lists, each in one piece of memory, and merges them:
// BenchmarkLeastStrings compares that with a map. It holds at most about twice the distinct strings, or
// twice the limit.
type leastStrings struct {
	limit   int // 0: none
	quota   *model.Quota
	current stringList
	// closed lists are sorted and unique, and each is less than half as long as the one before it.
	closed []stringList
	// charged is the memory that the quota knows of, and used the memory in use. They differ by less than
	// chargeStep.
	charged, used int64
	full          bool   // the limit is reached by strings up to last
	last          []byte // no greater string is wanted
	more          bool
}

const (
	// stringBytes estimates the cost of a string apart from its bytes: its bytes once more during a merge, its
	// end, and its header in the result.
	stringBytes = 64
	chargeStep  = 64 << 10
	// maxUnordered is the length at which an unordered list is sorted. Chosen without a benchmark.
	maxUnordered = 1 << 14
	// An ordered list of at least this length is closed when a string comes out of order. A shorter one
	// becomes unordered and is sorted later. Chosen without a benchmark.
	minOrdered = 256
)

// stringList is a list of strings in one piece of memory.
type stringList struct {
	text      []byte
	ends      []int
	unordered bool // not sorted
}

func (r *stringList) len() int { return len(r.ends) }

func (r *stringList) get(i int) []byte {
	begin := 0
	if i > 0 {
		begin = r.ends[i-1]
	}
	return r.text[begin:r.ends[i]]
}

func (r *stringList) append(b []byte) {
	r.text = append(r.text, b...)
	r.ends = append(r.ends, len(r.text))
}

// bytes returns the bytes that the list is charged.
func (r *stringList) bytes() int64 { return int64(len(r.text)) + stringBytes*int64(len(r.ends)) }

// cut drops all strings but the first n.
func (r *stringList) cut(n int) {
	r.ends = r.ends[:n]
	r.text = r.text[:r.ends[n-1]]
}

func (s *leastStrings) add(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if s.full && bytes.Compare(b, s.last) > 0 {
		s.more = true
		return nil
	}
	r := &s.current
	if n := r.len(); n > 0 && !r.unordered {
		switch c := bytes.Compare(b, r.get(n-1)); {
		case c == 0:
			return nil
		case c < 0 && n >= minOrdered:
			if err := s.close(); err != nil {
				return err
			}
		case c < 0:
			r.unordered = true
		}
	}
	r.append(b)
	if err := s.charge(int64(len(b)) + stringBytes); err != nil {
		return err
	}
	switch n := r.len(); {
	case r.unordered && (n >= maxUnordered || s.limit > 0 && n >= max(2*s.limit, 64)):
		return s.close()
	case !r.unordered && n == s.limit:
		// This holds even if last was set before: the new string is not greater.
		s.full, s.last = true, append(s.last[:0], b...)
	}
	return nil
}

// charge tells the quota in steps, because a call costs more than a string.
func (s *leastStrings) charge(n int64) error {
	s.used += n
	if due := s.used - s.charged; due > -chargeStep && due < chargeStep {
		return nil
	}
	return s.settle()
}

// settle tells the quota about all memory in use.
func (s *leastStrings) settle() error {
	err := s.quota.TakeBytes(s.used - s.charged)
	if err == nil {
		s.charged = s.used
	}
	return err
}

// close sorts the current list and merges it with the closed lists that are not much longer.
func (s *leastStrings) close() error {
	r := s.current
	s.current = stringList{}
	if r.len() == 0 {
		return nil
	}
	before := r.bytes()
	if r.unordered {
		r = r.sorted()
	}
	for n := len(s.closed); n > 0 && s.closed[n-1].len() < 2*r.len(); n-- {
		before += s.closed[n-1].bytes()
		r = mergeStrings(&s.closed[n-1], &r)
		s.closed = s.closed[:n-1]
	}
	if s.limit > 0 && r.len() >= s.limit {
		s.more = s.more || r.len() > s.limit
		r.cut(s.limit)
		// A list that reaches the limit bounds the result: no string above its last one is among the least.
		if last := r.get(s.limit - 1); !s.full || bytes.Compare(last, s.last) < 0 {
			s.full, s.last = true, append(s.last[:0], last...)
		}
	}
	s.closed = append(s.closed, r)
	return s.charge(r.bytes() - before)
}

// finish returns the strings, sorted, and whether there were more.
func (s *leastStrings) finish() ([]string, bool, error) {
	if err := s.close(); err != nil {
		return nil, false, err
	}
	var all stringList
	for n := len(s.closed); n > 0; n-- {
		all = mergeStrings(&s.closed[n-1], &all)
	}
	if s.limit > 0 && all.len() > s.limit {
		s.more = true
		all.cut(s.limit)
	}
	s.closed = nil
	out, text, begin := make([]string, all.len()), string(all.text), 0
	for i, end := range all.ends {
		out[i], begin = text[begin:end], end
	}
	s.used = all.bytes()
	return out, s.more, s.settle()
}

// sorted returns the strings in order, each once. It compares the first eight bytes as a number, because
// the strings themselves are spread over memory.
func (r *stringList) sorted() stringList {
	type entry struct {
		prefix uint64
		index  int32
	}
	order := make([]entry, r.len())
	for i := range order {
		var prefix [8]byte
		copy(prefix[:], r.get(i))
		order[i] = entry{binary.BigEndian.Uint64(prefix[:]), int32(i)}
	}
	slices.SortFunc(order, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(r.get(int(a.index)), r.get(int(b.index)))
	})
	out := stringList{text: make([]byte, 0, len(r.text)), ends: make([]int, 0, r.len())}
	for _, e := range order {
		if b := r.get(int(e.index)); out.len() == 0 || !bytes.Equal(out.get(out.len()-1), b) {
			out.append(b)
		}
	}
	return out
}

// mergeStrings merges two lists. It may return one of them.
func mergeStrings(a, b *stringList) stringList {
	switch {
	case a.len() == 0:
		return *b
	case b.len() == 0:
		return *a
	}
	out := stringList{text: make([]byte, 0, max(len(a.text), len(b.text))), ends: make([]int, 0, max(a.len(), b.len()))}
	i, j := 0, 0
	for i < a.len() && j < b.len() {
		x, y := a.get(i), b.get(j)
		c := bytes.Compare(x, y)
		if c <= 0 {
			out.append(x)
			i++
		} else {
			out.append(y)
		}
		if c >= 0 {
			j++
		}
	}
	for ; i < a.len(); i++ {
		out.append(a.get(i))
	}
	for ; j < b.len(); j++ {
		out.append(b.get(j))
	}
	return out
}
