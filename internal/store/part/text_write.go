package part

import (
	"math"

	"github.com/shaledb/shale/internal/model"
)

// textWriter collects text. A series either has units of its own, of about a page, or stands with its neighbours in one
// that they share.
type textWriter struct {
	unit unitCoder

	// own are the rows of the current series that are in no unit yet. It has units of its own if pages > 0.
	own, rest textRows
	pages     int
	// last is the time of its last row.
	last int64
	// shared are the rows of the series before it, from rank0 on, that are in no unit yet.
	shared textRows
	rank0  uint32
	counts []int64

	one   [1]int64
	remap textRemap
	merge textMerge
	items *filterItems // nil before the first filter: it is large
	// entries wait for the filter page to be written: filters and where each of them ends.
	entries []pageEntry
	filters []byte
	ends    []uint32
}

// writeOwn writes the first n rows of the current series as a unit.
func (p *Writer) writeOwn(n int) error {
	x := &p.text
	if err := p.flushShared(); err != nil {
		return err
	}
	var rows model.TextRows
	viewRows(&rows, &x.own.TextRows, 0, n)
	x.one[0] = int64(n)
	if err := p.writeUnit(p.rank, x.one[:], &rows); err != nil {
		return err
	}
	x.pages++
	// What is left changes places with what is empty.
	x.remap.forget()
	if left := len(x.own.Times) - n; x.rest.append(&x.own.TextRows, n, len(x.own.Times), &x.remap) != left {
		return invalid("text: %d rows have more metadata than a unit may have", left)
	}
	x.own.reset()
	x.own, x.rest = x.rest, x.own
	x.own.generation = max(x.own.generation, x.rest.generation) + 1
	return nil
}

// endText ends the text of the current series. What is left of one that has units of its own becomes one or two more, of
// about a page.
func (p *Writer) endText() error {
	x := &p.text
	x.last = math.MinInt64
	if x.own.empty() {
		x.pages = 0
		return nil
	}
	if x.pages > 0 || x.own.size() >= p.sizes.text {
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

// flushShared writes the unit of the series before the current one.
func (p *Writer) flushShared() error {
	x := &p.text
	if x.shared.empty() {
		return nil
	}
	if err := p.writeUnit(x.rank0, x.counts, &x.shared.TextRows); err != nil {
		return err
	}
	x.shared.reset()
	return nil
}

// writeUnit writes rows of consecutive ranks.
func (p *Writer) writeUnit(rank0 uint32, counts []int64, rows *model.TextRows) error {
	x := &p.text
	n := len(rows.Times)
	e := pageEntry{rank0: rank0, ranks: uint32(len(counts)), rows: uint64(n), times: noTimes}
	for _, t := range rows.Times {
		e.times.Min, e.times.Max = min(e.times.Min, t), max(e.times.Max, t)
	}
	lines := rows.Bytes[rows.Begin:rows.Ends[n-1]]
	e.text.bytes = uint64(len(lines))
	var err error
	p.payload = x.unit.append(p.payload[:0], counts, rows)
	if e.addr, err = p.page(p.textCodec()); err != nil {
		return err
	}
	// A unit that is there to stay is compressed once, and has a filter. One that is small, or that series share, is not, as long as
	// the part will be merged.
	before := len(x.filters)
	if p.o.Level == Dense || len(counts) == 1 && len(lines) >= p.sizes.text/2 {
		if x.items == nil {
			x.items = &filterItems{}
		}
		x.items.reset()
		p.stored, err = sealLines(p.stored[:0], lines, rows.Begin, rows.Ends, x.items)
		metadata := 0
		for _, l := range x.unit.used {
			x.items.metadata(l)
			metadata += len(l)
		}
		x.filters = x.items.append(x.filters, len(lines)+metadata)
	} else {
		p.stored, err = sealPage(p.stored[:0], lines, codecS2)
	}
	if err != nil {
		return err
	}
	if len(lines) > 0 {
		e.text.lines = uint32(len(p.stored))
		if err := p.write(p.stored); err != nil {
			return err
		}
	}
	return p.unitWritten(e, len(x.filters) > before)
}

// unitWritten enters a unit in the index as soon as the page of its filter is there, if it has one.
func (p *Writer) unitWritten(e pageEntry, filter bool) error {
	x := &p.text
	if filter {
		e.text.number = uint32(len(x.ends))
		e.text.filter.Len = 1 // until it is known
		x.ends = append(x.ends, uint32(len(x.filters)))
	}
	x.entries = append(x.entries, e)
	if len(x.filters) >= p.sizes.filter || len(x.ends) >= maxFilters || len(x.ends) == 0 || len(x.entries) >= maxFilters {
		return p.flushFilters()
	}
	return nil
}

// flushFilters writes the filter page of the units that wait for it, and their entries.
func (p *Writer) flushFilters() error {
	x := &p.text
	var a Addr
	if len(x.ends) > 0 {
		p.payload = appendFilterPage(p.payload[:0], x.filters, x.ends)
		var err error
		if a, err = p.page(codecNone); err != nil {
			return err
		}
		x.filters, x.ends = x.filters[:0], x.ends[:0]
	}
	for i := range x.entries {
		if e := &x.entries[i]; e.text.filter.Len > 0 {
			e.text.filter = a
		}
		if err := p.indexed(textSection, x.entries[i]); err != nil {
			return err
		}
	}
	x.entries = x.entries[:0]
	return nil
}

// flushText writes what is left of the text of the tenant.
func (p *Writer) flushText() error {
	if err := p.endText(); err != nil {
		return err
	}
	if err := p.flushShared(); err != nil {
		return err
	}
	return p.flushFilters()
}
