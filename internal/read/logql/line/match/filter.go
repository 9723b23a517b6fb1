package match

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// LineFilter is one line filter of a query.
type LineFilter struct {
	Test   lineTest // what its operands say, before it is negated
	Negate bool
	// Needed are clauses that hold for each line that satisfies test. If exact is set there is one, and it is
	// all of test.
	Needed []Clause
	exact  bool
}

func (f *LineFilter) Matches(line []byte, ended func() bool) bool {
	return matchesUntil(f.Test, line, ended) != f.Negate
}

// NewLineFilter compiles a line filter.
func NewLineFilter(s *syntax.LineFilter) (*LineFilter, error) {
	f := &LineFilter{Negate: s.Op.Negated(), exact: true}
	var tests anyOf
	var joined Clause
	for i, o := range s.Any {
		t, err := newOperand(s.Op, o)
		if err != nil {
			return nil, err
		}
		tests = append(tests, t.test)
		if len(s.Any) == 1 {
			f.Test, f.Needed, f.exact = t.test, t.needed, t.exact
			return f, nil
		}
		f.exact = f.exact && t.exact
		if best := bestOf(t.needed); best != nil && (i == 0 || joined != nil) {
			joined = append(joined, best...)
		} else {
			joined = nil
		}
	}
	f.Test, f.Needed = tests, clauses(joined)
	return f, nil
}

func newOperand(op syntax.LineOp, o syntax.LineOperand) (regexpTest, error) {
	if o.IP {
		if op != syntax.LineContains && op != syntax.LineNotContain {
			return regexpTest{}, fmt.Errorf("ip: invalid operation")
		}
		t, err := NewAddressTest(o.Value)
		return regexpTest{test: t}, err
	}
	switch op {
	case syntax.LineMatches, syntax.LineNotMatch:
		return newRegexpTest(o.Value)
	case syntax.LinePattern, syntax.LineNotPattern:
		return newPatternTest(o.Value)
	}
	if o.Value == "" {
		return regexpTest{test: Always{}}, nil
	}
	c := Clause{{text: []byte(o.Value)}}
	return regexpTest{c, []Clause{c}, true}, nil
}

// Filter finds the lines of a page that pass the line filters with which a query begins: those that look at
// lines as they are stored. It is used by one goroutine.
type Filter struct {
	filters []*LineFilter
	lead    *LineFilter // the one that is run over the page as a whole, or nil
	clause  Clause      // of lead
	words   []uint64
	ended   func() bool // nil: never
}

// Bind says what ends the work on a page. What Select returns after the end means nothing.
func (f *Filter) Bind(ctx context.Context) { f.ended = func() bool { return ctx.Err() != nil } }

// NewFilter picks the filter that is run over whole pages: of those with something to look for, that with the
// longest strings; without one, a negation that is exact.
func NewFilter(filters []*LineFilter) *Filter {
	f := &Filter{filters: filters}
	for _, x := range filters {
		if best := bestOf(x.Needed); !x.Negate && best != nil && len(best) <= maxPageNeedles {
			if f.lead == nil || best.weight() > f.clause.weight() {
				f.lead, f.clause = x, best
			}
		}
	}
	for _, x := range filters {
		if f.lead == nil && x.exact && len(x.Needed[0]) <= maxPageNeedles {
			f.lead, f.clause = x, x.Needed[0]
		}
	}
	return f
}

// maxPageNeedles is how many strings a page is searched for, each on its own. With more it is faster to look
// at each line, where the first that is found ends the search.
const maxPageNeedles = 8

// Select appends those of rows [from, to) whose lines pass, ascending.
func (f *Filter) Select(dst []int32, rows *model.TextRows, from, to int) []int32 {
	if from >= to {
		return dst
	}
	if f.lead == nil {
		for i := from; i < to; i++ {
			if f.leaves(i) {
				return dst
			}
			if f.rest(rows.Line(i), nil) {
				dst = append(dst, int32(i))
			}
		}
		return dst
	}
	f.search(rows, from, to)
	done := f.lead
	if !done.exact {
		done = nil
	}
	for w, word := range f.words {
		for ; word != 0; word &= word - 1 {
			i := from + w*64 + bits.TrailingZeros64(word)
			if f.leaves(i) {
				return dst
			}
			if len(f.filters) == 1 && done != nil || f.rest(rows.Line(i), done) {
				dst = append(dst, int32(i))
			}
		}
	}
	return dst
}

// leaves reports, once in 16 rows, whether the query has ended.
func (f *Filter) leaves(row int) bool { return row%16 == 0 && f.ended != nil && f.ended() }

// rest runs the filters but one on a line.
func (f *Filter) rest(line []byte, but *LineFilter) bool {
	for _, x := range f.filters {
		if x != but && !x.Matches(line, f.ended) {
			return false
		}
	}
	return true
}

// search sets the bits of the rows that the leading clause leaves.
func (f *Filter) search(rows *model.TextRows, from, to int) {
	n := (to - from + 63) / 64
	if cap(f.words) < n {
		f.words = make([]uint64, n)
	}
	f.words = f.words[:n]
	clear(f.words)
	for i := range f.clause {
		f.find(&f.clause[i], rows, from, to)
	}
	if !f.lead.Negate {
		return
	}
	for i := range f.words {
		f.words[i] = ^f.words[i]
	}
	if used := uint(to-from) % 64; used != 0 {
		f.words[n-1] &= 1<<used - 1
	}
}

// find sets the bits of the rows that have a string. It searches the bytes of all lines at once, and skips
// a hit that reaches from one line into the next.
func (f *Filter) find(n *needle, rows *model.TextRows, from, to int) {
	begin := int(rows.Begin)
	if from > 0 {
		begin = int(rows.Ends[from-1])
	}
	b := rows.Bytes[:rows.Ends[to-1]]
	if n.special && hasSpecial(b[begin:]) { // hits have no fixed length
		for i := from; i < to; i++ {
			if n.Matches(rows.Line(i)) {
				f.words[(i-from)/64] |= 1 << (uint(i-from) % 64)
			}
		}
		return
	}
	row := from
	for at := begin; ; {
		hit := n.indexPlain(b[at:])
		if hit < 0 {
			return
		}
		hit += at
		for int(rows.Ends[row]) <= hit {
			row++
		}
		end := int(rows.Ends[row])
		if hit+len(n.text) > end {
			at = hit + 1
			continue
		}
		f.words[(row-from)/64] |= 1 << (uint(row-from) % 64)
		if at = end; at == len(b) {
			return
		}
	}
}
