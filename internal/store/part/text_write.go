package part

import (
	"math"
)

// textWriter collects text. A series either has units of its own, of a quarter of a page to one and a half, or stands with its
// neighbours in one that they share.
type textWriter struct {
	// units are coded side by side; the first of them are waiting for it.
	units   []*codedUnit
	waiting int

	// own are the rows of the current series that are in no unit yet. It has units of its own if pages > 0.
	own   textRows
	pages int
	// last is the time of its last row.
	last int64
	// shared are the rows of the series before it, from rank0 on, that are in no unit yet.
	shared textRows
	rank0  uint32
	counts []int64

	remap textRemap
	merge textMerge
	// entries wait for the pages of filters to be written: filters and where each of them ends.
	entries []pageEntry
	filters []byte
	ends    []uint32
}

// writeOwn makes a unit of the first n rows of the current series.
func (p *Writer) writeOwn(n int) error {
	x := &p.text
	if err := p.flushShared(); err != nil {
		return err
	}
	u, err := p.nextUnit()
	if err != nil {
		return err
	}
	viewRows(&u.rows, &x.own.TextRows, 0, n)
	u.counts = append(u.counts[:0], int64(n))
	u.is(p.rank)
	x.pages++
	// What is left changes places with what is empty.
	x.remap.forget()
	if left := len(x.own.Times) - n; u.from.append(&x.own.TextRows, n, len(x.own.Times), &x.remap) != left {
		return invalid("text: %d rows have more metadata than a unit may have", left)
	}
	x.own, u.from = u.from, x.own
	x.own.generation = max(x.own.generation, u.from.generation) + 1
	return nil
}

// endText ends the text of the current series. What is left of one that has units of its own becomes one or two more, of
// about a page. A series has its own as soon as one can be copied from then on: what series share is coded anew by each merge.
func (p *Writer) endText() error {
	x := &p.text
	x.last = math.MinInt64
	if x.own.empty() {
		x.pages = 0
		return nil
	}
	if x.pages > 0 || x.own.size() >= p.sizes.stays() {
		for !x.own.empty() {
			n := len(x.own.Times)
			if x.own.size() > p.sizes.text*3/2 {
				n = x.own.share(x.own.size() / 2)
			}
			if err := p.writeOwn(n); err != nil {
				return err
			}
		}
		x.pages = 0
		return nil
	}
	if !x.shared.empty() && (p.rank-x.rank0 >= maxPageRanks || !x.shared.fits(&x.own, &p.sizes)) {
		if err := p.flushShared(); err != nil {
			return err
		}
	}
	if x.shared.empty() {
		x.rank0, x.counts = p.rank, x.counts[:0]
	}
	for uint32(len(x.counts)) < p.rank-x.rank0 {
		x.counts = append(x.counts, 0)
	}
	x.counts = append(x.counts, int64(len(x.own.Times)))
	x.remap.forget()
	if n := len(x.own.Times); x.shared.append(&x.own.TextRows, 0, n, &x.remap) != n {
		return invalid("text: %d rows have more metadata than a unit may have", n)
	}
	x.own.reset()
	if x.shared.size() >= p.sizes.text {
		return p.flushShared()
	}
	return nil
}

// flushShared makes a unit of the rows of the series before the current one.
func (p *Writer) flushShared() error {
	x := &p.text
	if x.shared.empty() {
		return nil
	}
	u, err := p.nextUnit()
	if err != nil {
		return err
	}
	u.rows = x.shared.TextRows
	u.counts, x.counts = x.counts, u.counts[:0]
	u.is(x.rank0)
	x.shared, u.from = u.from, x.shared
	return nil
}

// is says which rows the unit has: of consecutive ranks, from rank0 on.
func (u *codedUnit) is(rank0 uint32) {
	e := pageEntry{rank0: rank0, ranks: uint32(len(u.counts)), rows: uint64(len(u.rows.Times)), times: noTimes}
	for _, t := range u.rows.Times {
		e.times.Min, e.times.Max = min(e.times.Min, t), max(e.times.Max, t)
	}
	e.text.bytes = uint64(len(u.lineBytes()))
	u.entry = e
}

// unitWritten enters a unit in the index as soon as the page of its filter is there, if it has one. Filters wait for each other,
// so that many share a page and its slices, and a query that looks for a needle reads few of these.
func (p *Writer) unitWritten(e pageEntry, filter []byte) error {
	x := &p.text
	if len(filter) > 0 {
		e.text.filter.Len = 1 // until it is known
		x.filters = append(x.filters, filter...)
		x.ends = append(x.ends, uint32(len(x.filters)))
	}
	x.entries = append(x.entries, e)
	if len(x.filters) >= p.sizes.filters || len(x.ends) == 0 || len(x.entries) >= maxWaitingEntries {
		return p.flushFilters()
	}
	return nil
}

// maxWaitingEntries bounds the entries of units that wait for filters, of some 150 bytes each.
const maxWaitingEntries = 1 << 14

// flushFilters writes the filters, and then the entries of the units that wait for them.
func (p *Writer) flushFilters() error {
	x := &p.text
	next := 0 // of x.entries
	for from := 0; from < len(x.ends); {
		a, n, err := p.writeFilters(from)
		if err != nil {
			return err
		}
		to := from + n
		for number := uint32(0); from < to; next++ {
			if e := &x.entries[next]; e.text.filter.Len > 0 {
				e.text.filter, e.text.number = a, number
				number++
				from++
			}
		}
	}
	for i := range x.entries {
		if err := p.indexed(textSection, x.entries[i]); err != nil {
			return err
		}
	}
	x.entries, x.filters, x.ends = x.entries[:0], x.filters[:0], x.ends[:0]
	return nil
}

// writeFilters writes a page of the filters from one on, with its slices, and returns its address and how many filters it has.
func (p *Writer) writeFilters(from int) (a Addr, n int, err error) {
	x := &p.text
	begin := uint32(0)
	if from > 0 {
		begin = x.ends[from-1]
	}
	n, slices := together(x.filters, begin, x.ends[from:], p.sizes.slice)
	ends := x.ends[from : from+n]
	p.payload = appendFilterPage(p.payload[:0], x.filters, begin, ends, slices)
	a, err = p.page(codecNone)
	for i := 0; i < slices && err == nil; i++ {
		p.payload = appendSlice(p.payload[:0], x.filters, begin, ends, slices, i)
		_, err = p.page(codecNone)
	}
	return a, n, err
}

// flushText writes what is left of the text of the tenant.
func (p *Writer) flushText() error {
	if err := p.endText(); err != nil {
		return err
	}
	if err := p.flushShared(); err != nil {
		return err
	}
	if err := p.codeUnits(); err != nil {
		return err
	}
	return p.flushFilters()
}
