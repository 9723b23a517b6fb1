package read

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// leastStrings collects distinct strings, or only the least ones if there is a limit. Sources emit most of
// their strings in order, so that what is held is sorted runs, each in one piece of memory, which are merged:
// a million values of a label took 1.1 s of CPU in a map with a sort behind it. It holds at most about twice
// what is distinct, or twice the limit.
type leastStrings struct {
	limit int // 0: none
	quota *model.Quota
	open  stringRun
	// runs are closed: sorted, unique, each less than half as long as the one before.
	runs []stringRun
	// charged is the memory that the quota knows of, taken that which is in use. They differ by less than
	// chargeStep.
	charged, taken int64
	full           bool   // there are as many as the limit allows up to
	last           []byte // this one, so that no greater one is wanted
	more           bool
}

const (
	// stringBytes is about what a string costs beside its own bytes: those again while runs are merged, its
	// end, and its header in the answer.
	stringBytes = 64
	chargeStep  = 64 << 10
	// looseStrings is how many strings that came in no order a run has before it is sorted.
	looseStrings = 1 << 14
	// A run of so many in order is closed by one that is out of order, rather than being sorted again.
	orderedStrings = 256
)

// stringRun is a list of strings in one piece of memory.
type stringRun struct {
	text  []byte
	ends  []int
	loose bool // they are in no order
}

func (r *stringRun) len() int { return len(r.ends) }

func (r *stringRun) at(i int) []byte {
	begin := 0
	if i > 0 {
		begin = r.ends[i-1]
	}
	return r.text[begin:r.ends[i]]
}

func (r *stringRun) append(b []byte) {
	r.text = append(r.text, b...)
	r.ends = append(r.ends, len(r.text))
}

// bytes is what the run is charged with.
func (r *stringRun) bytes() int64 { return int64(len(r.text)) + stringBytes*int64(len(r.ends)) }

// cut drops all but the first n.
func (r *stringRun) cut(n int) {
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
	r := &s.open
	if n := r.len(); n > 0 && !r.loose {
		switch c := bytes.Compare(b, r.at(n-1)); {
		case c == 0:
			return nil
		case c < 0 && n >= orderedStrings:
			if err := s.close(); err != nil {
				return err
			}
		case c < 0:
			r.loose = true
		}
	}
	r.append(b)
	if err := s.charge(int64(len(b)) + stringBytes); err != nil {
		return err
	}
	switch n := r.len(); {
	case r.loose && (n >= looseStrings || s.limit > 0 && n >= max(2*s.limit, 64)):
		return s.close()
	case !r.loose && n == s.limit:
		// Also if there was a last one before, which this one is not greater than.
		s.full, s.last = true, append(s.last[:0], b...)
	}
	return nil
}

// charge tells the quota of memory in steps, since each call costs more than a string does.
func (s *leastStrings) charge(n int64) error {
	s.taken += n
	if due := s.taken - s.charged; due > -chargeStep && due < chargeStep {
		return nil
	}
	return s.settle()
}

// settle tells the quota of all that is in use.
func (s *leastStrings) settle() error {
	err := s.quota.TakeBytes(s.taken - s.charged)
	if err == nil {
		s.charged = s.taken
	}
	return err
}

// close sorts the open run and merges it with others that are not much longer.
func (s *leastStrings) close() error {
	r := s.open
	s.open = stringRun{}
	if r.len() == 0 {
		return nil
	}
	before := r.bytes()
	if r.loose {
		r = r.sorted()
	}
	for n := len(s.runs); n > 0 && s.runs[n-1].len() < 2*r.len(); n-- {
		before += s.runs[n-1].bytes()
		r = mergeStrings(&s.runs[n-1], &r)
		s.runs = s.runs[:n-1]
	}
	if s.limit > 0 && r.len() >= s.limit {
		s.more = s.more || r.len() > s.limit
		r.cut(s.limit)
		// What is greater than the last of any such run is not among the least.
		if last := r.at(s.limit - 1); !s.full || bytes.Compare(last, s.last) < 0 {
			s.full, s.last = true, append(s.last[:0], last...)
		}
	}
	s.runs = append(s.runs, r)
	return s.charge(r.bytes() - before)
}

// finish returns the strings, sorted, and whether there were more.
func (s *leastStrings) finish() ([]string, bool, error) {
	if err := s.close(); err != nil {
		return nil, false, err
	}
	var all stringRun
	for n := len(s.runs); n > 0; n-- {
		all = mergeStrings(&s.runs[n-1], &all)
	}
	if s.limit > 0 && all.len() > s.limit {
		s.more = true
		all.cut(s.limit)
	}
	s.runs = nil
	out, text, begin := make([]string, all.len()), string(all.text), 0
	for i, end := range all.ends {
		out[i], begin = text[begin:end], end
	}
	s.taken = all.bytes()
	return out, s.more, s.settle()
}

// sorted returns the strings of the run in order, each once. Their first eight bytes are compared as a
// number, since those of strings that lie apart are read from memory each time.
func (r *stringRun) sorted() stringRun {
	type place struct {
		first uint64
		at    int32
	}
	order := make([]place, r.len())
	for i := range order {
		var first [8]byte
		copy(first[:], r.at(i))
		order[i] = place{binary.BigEndian.Uint64(first[:]), int32(i)}
	}
	slices.SortFunc(order, func(a, b place) int {
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		return bytes.Compare(r.at(int(a.at)), r.at(int(b.at)))
	})
	out := stringRun{text: make([]byte, 0, len(r.text)), ends: make([]int, 0, r.len())}
	for _, p := range order {
		if b := r.at(int(p.at)); out.len() == 0 || !bytes.Equal(out.at(out.len()-1), b) {
			out.append(b)
		}
	}
	return out
}

// mergeStrings merges two runs. It may return one of them.
func mergeStrings(a, b *stringRun) stringRun {
	switch {
	case a.len() == 0:
		return *b
	case b.len() == 0:
		return *a
	}
	out := stringRun{text: make([]byte, 0, max(len(a.text), len(b.text))), ends: make([]int, 0, max(a.len(), b.len()))}
	i, j := 0, 0
	for i < a.len() && j < b.len() {
		x, y := a.at(i), b.at(j)
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
		out.append(a.at(i))
	}
	for ; j < b.len(); j++ {
		out.append(b.at(j))
	}
	return out
}
