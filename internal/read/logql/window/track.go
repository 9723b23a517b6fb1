package window

import (
	"sort"
	"unsafe"
)

// Charge charges memory to a query before it is used. A negative n gives it back, which does not fail.
type Charge func(n int64) error

// Result takes the value of a step. Calls come in the order of steps, for those that have samples.
type Result func(step int, v float64)

// Series aggregates the samples of one series of one worker. It is used by one goroutine.
type Series interface {
	// Add adds a sample of a cell.
	Add(cell int32, s *Sample, charge Charge) error
	// Merge adds the samples of another series of the same aggregation, which is not used any more.
	Merge(o Series, charge Charge) error
	// Values gives the value of each window that has samples.
	Values(give Result)
	// Charged returns the bytes that the series has charged.
	Charged() int64
}

// pageCells is how many cells a page of partial aggregates has.
const pageCells = 64

// page holds the partial aggregates of pageCells cells.
type page[P any] struct {
	number int32  // of the first cell, divided by pageCells
	has    uint64 // cells that have samples
	cells  []P
}

// track keeps the partial aggregates of a series by cell, in pages that are made when they are needed.
type track[P any] struct {
	of      *Cells
	pages   []page[P] // by number
	last    int       // page that was used last
	charged int64
}

// at returns the partial aggregate of a cell, to add to.
func (t *track[P]) at(cell int32, charge Charge) (*P, error) {
	number := cell / pageCells
	if t.last >= len(t.pages) || t.pages[t.last].number != number {
		if err := t.turnTo(number, charge); err != nil {
			return nil, err
		}
	}
	p := &t.pages[t.last]
	p.has |= 1 << (cell % pageCells)
	return &p.cells[cell%pageCells], nil
}

// turnTo makes a page the last one.
func (t *track[P]) turnTo(number int32, charge Charge) error {
	i := sort.Search(len(t.pages), func(i int) bool { return t.pages[i].number >= number })
	if i == len(t.pages) || t.pages[i].number != number {
		n := min(pageCells, t.of.count-int(number)*pageCells)
		var p page[P]
		var cell P
		if err := t.charge(2*int64(unsafe.Sizeof(p))+int64(n)*int64(unsafe.Sizeof(cell)), charge); err != nil {
			return err
		}
		t.pages = append(t.pages, p)
		copy(t.pages[i+1:], t.pages[i:])
		t.pages[i] = page[P]{number: number, cells: make([]P, n)}
	}
	t.last = i
	return nil
}

func (t *track[P]) charge(n int64, charge Charge) error {
	err := charge(n)
	if err == nil {
		t.charged += n
	}
	return err
}

// Charged returns the bytes that the series has charged.
func (t *track[P]) Charged() int64 { return t.charged }

// each calls visit for each cell that has samples, in order.
func (t *track[P]) each(visit func(cell int32, p *P) error) error {
	for i := range t.pages {
		p := &t.pages[i]
		for k := range p.cells {
			if p.has>>k&1 == 0 {
				continue
			}
			if err := visit(p.number*pageCells+int32(k), &p.cells[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// aggregate is a series whose cells have partial aggregates of their own kind.
type aggregate[P any, M partial[P]] struct {
	track[P]
	divisor float64
}

// Add adds a sample of a cell.
func (a *aggregate[P, M]) Add(cell int32, s *Sample, charge Charge) error {
	p, err := a.at(cell, charge)
	if err != nil {
		return err
	}
	before := M(p).extra()
	M(p).add(s)
	if after := M(p).extra(); after != before {
		return a.charge(after-before, charge)
	}
	return nil
}

// Merge adds the cells of another series.
func (a *aggregate[P, M]) Merge(o Series, charge Charge) error {
	return o.(*aggregate[P, M]).each(func(cell int32, from *P) error {
		p, err := a.at(cell, charge)
		if err != nil {
			return err
		}
		before := M(p).extra()
		M(p).merge(from)
		return a.charge(M(p).extra()-before, charge)
	})
}

// Values slides the window over the cells. Floats cannot be taken away from an aggregate without an error, so
// the window is a queue of two parts. The later part has one aggregate, which grows. The earlier part has the
// aggregates of all its ends, so that it shrinks without a merge. When it is used up, the later part becomes
// the earlier one. Each cell is merged twice, and each step merges the two parts.
func (a *aggregate[P, M]) Values(give Result) {
	var (
		c       = a.of
		front   []P   // aggregates of cells [begin+i, middle)
		begin   int32 // of front
		middle  int32 // of the queue
		end     int32 // of the queue
		back    P     // of cells [middle, end)
		present = present{has: a.has}
	)
	for step := range c.first {
		first, last := c.first[step], c.last[step]
		if last < first || !present.any(first, last) {
			continue
		}
		if first >= middle { // nothing of the earlier part is left
			begin, middle = first, last+1
			end = middle
			front = a.suffixes(front[:0], begin, middle)
			var none P
			back = none
		}
		for ; end <= last; end++ {
			if p := a.find(end); p != nil {
				M(&back).merge(p)
			}
		}
		var sum P
		M(&sum).merge(&front[first-begin])
		M(&sum).merge(&back)
		give(step, M(&sum).value()/a.divisor)
	}
}

// suffixes fills dst with the aggregates of cells [from+i, to).
func (a *aggregate[P, M]) suffixes(dst []P, from, to int32) []P {
	n := int(to - from)
	for len(dst) < n {
		var none P
		dst = append(dst, none)
	}
	for i := n - 1; i >= 0; i-- {
		var sum P
		if i+1 < n {
			M(&sum).merge(&dst[i+1])
		}
		if p := a.find(from + int32(i)); p != nil {
			M(&sum).merge(p)
		}
		dst[i] = sum
	}
	return dst
}

// has reports whether a cell has samples.
func (t *track[P]) has(cell int32) bool { return t.find(cell) != nil }

// present knows how many cells of a sliding window have samples.
type present struct {
	has      func(cell int32) bool
	from, to int32 // the window
	n        int
}

// any moves the window and reports whether it has samples. Neither end may move back.
func (p *present) any(first, last int32) bool {
	for ; p.to <= last; p.to++ {
		if p.has(p.to) {
			p.n++
		}
	}
	for ; p.from < first; p.from++ {
		if p.has(p.from) {
			p.n--
		}
	}
	return p.n > 0
}

// find returns the partial aggregate of a cell, or nil if it has no samples.
func (t *track[P]) find(cell int32) *P {
	number := cell / pageCells
	if t.last >= len(t.pages) || t.pages[t.last].number != number {
		i := sort.Search(len(t.pages), func(i int) bool { return t.pages[i].number >= number })
		if i == len(t.pages) || t.pages[i].number != number {
			return nil
		}
		t.last = i
	}
	p := &t.pages[t.last]
	if p.has>>(cell%pageCells)&1 == 0 {
		return nil
	}
	return &p.cells[cell%pageCells]
}
