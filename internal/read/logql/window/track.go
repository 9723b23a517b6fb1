package window

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"unsafe"
)

// Charge charges memory to a query before it is used. A negative n gives it back, which does not fail.
type Charge func(n int64) error

// Result takes the value of a step. Calls come in the order of steps, for those that have samples.
type Result = func(step int, v float64)

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

// Values slides the window over the cells that have samples. Floats cannot be taken away from an aggregate
// without an error, so the window is a queue of two parts. The later part has one aggregate, which grows. The
// earlier part has the aggregates of all its ends, so that it shrinks without a merge. When it is used up,
// the whole window becomes the earlier part. Each cell is merged twice, and each step merges the two parts.
func (a *aggregate[P, M]) Values(give Result) {
	var (
		cells []int32 // of the earlier part, the last one first
		ends  []P     // the aggregate of each of these cells and all after it in that part
		later P
		next  int32 // cell after the queue
	)
	a.windows(func(step int, first, last int32) {
		for len(cells) > 0 && cells[len(cells)-1] < first {
			cells, ends = cells[:len(cells)-1], ends[:len(ends)-1]
		}
		if len(cells) == 0 {
			cells, ends = a.earlier(cells, ends[:0], first, last)
			var none P
			later, next = none, last+1
		}
		for cell := a.next(next); cell <= last; cell = a.next(cell + 1) {
			M(&later).merge(a.find(cell))
		}
		next = last + 1
		var sum P
		M(&sum).merge(&ends[len(ends)-1])
		M(&sum).merge(&later)
		give(step, M(&sum).value()/a.divisor)
	})
}

// earlier appends the cells from first to last that have samples, the last one first, and the aggregates of
// each and all after it.
func (a *aggregate[P, M]) earlier(cells []int32, ends []P, first, last int32) ([]int32, []P) {
	for cell := a.next(first); cell <= last; cell = a.next(cell + 1) {
		cells = append(cells, cell)
	}
	slices.Reverse(cells)
	for i, cell := range cells {
		var sum P
		M(&sum).merge(a.find(cell))
		if i > 0 {
			M(&sum).merge(&ends[i-1])
		}
		ends = append(ends, sum)
	}
	return cells, ends
}

// windows calls visit for each step whose window has samples, with its cells.
func (t *track[P]) windows(visit func(step int, first, last int32)) {
	c := t.of
	for step := 0; step < len(c.first); step++ {
		cell := t.next(c.first[step])
		if cell > c.last[step] {
			if cell == noCell {
				return
			}
			step = c.FirstStep(cell) // later than this one
		}
		visit(step, c.first[step], c.last[step])
	}
}

// noCell is after all cells.
const noCell = math.MaxInt32

// next returns the first cell at or after another one that has samples, or noCell.
func (t *track[P]) next(cell int32) int32 {
	number := cell / pageCells
	if t.last >= len(t.pages) || t.pages[t.last].number != number {
		t.last = sort.Search(len(t.pages), func(i int) bool { return t.pages[i].number >= number })
	}
	for i := t.last; i < len(t.pages); i++ {
		p, from := &t.pages[i], int32(0)
		if p.number == number {
			from = cell % pageCells
		}
		if left := p.has >> from; left != 0 {
			t.last = i
			return p.number*pageCells + from + int32(bits.TrailingZeros64(left))
		}
	}
	return noCell
}

// find returns the partial aggregate of a cell that has samples.
func (t *track[P]) find(cell int32) *P {
	number := cell / pageCells
	if t.last >= len(t.pages) || t.pages[t.last].number != number {
		t.last = sort.Search(len(t.pages), func(i int) bool { return t.pages[i].number >= number })
	}
	return &t.pages[t.last].cells[cell%pageCells]
}
