package part

import (
	"fmt"
)

func dumpText(a *annotator) {
	a.raw(1, "family 3")
	flags := a.raw(1, "flags (1: has metadata)")
	n := 0
	for _, c := range a.column(int(min(a.uvarint("ranks"), maxPageRanks)), "rows by rank") {
		if n += int(c); c < 0 || n > maxUnitRows {
			a.s.fail()
			return
		}
	}
	a.column(n, "times")
	a.column(n, "lengths of lines")
	if len(flags) != 1 || flags[0]&textMetadata == 0 {
		return
	}
	sets := int(min(a.uvarint("sets of metadata"), uint64(n)))
	a.column(n, "set of each row, from 1; 0: none")
	names := a.uvarint("names")
	for i := uint64(0); i < names && !a.s.bad; i++ {
		a.text("name")
		dumpValues(a, sets)
	}
}

// dumpValues shows the column of a name of metadata.
func dumpValues(a *annotator, sets int) {
	values := 0
	for _, has := range a.column(sets, "which sets have it") {
		values += int(has & 1)
	}
	kind, count := a.raw(1, "values (0: as they come, 1: each once)"), values
	if len(kind) == 1 && kind[0] == metadataDict {
		count = int(min(a.uvarint("distinct values"), uint64(values)))
	}
	for i, l := range a.column(count, "lengths") {
		a.show(func() string { return fmt.Sprintf("value %d: %q", i, a.s.take(uint64(l))) })
	}
	if len(kind) == 1 && kind[0] == metadataDict {
		a.column(values, "values")
	}
}

func dumpFilters(a *annotator) {
	var p filterPage
	err := p.open(a.payload, Addr{})
	a.uvarint("filters")
	a.raw(1, "number of slices")
	if err != nil {
		a.raw(uint64(len(a.s.b)), err.Error())
		return
	}
	if p.slices > 0 {
		a.uvarint("bytes of each slice")
	}
	for i := range p.filters {
		a.raw(1, fmt.Sprintf("filter %d: classes (1: words, 2: long runs, 4: runs, 8: dotted numbers, 16: metadata)", i))
		for class := range itemClasses {
			if p.filters[i].classes>>class&1 != 0 {
				a.raw(1, fmt.Sprintf("hashes of class %d", 1<<class))
				a.uvarint("length of its bits")
			}
		}
	}
	for i := range p.filters {
		for class, n := range p.filters[i].lens {
			if n > 0 && !p.divided(n) {
				a.raw(uint64(n), fmt.Sprintf("filter %d: bits of class %d", i, 1<<class))
			}
		}
	}
}

// fields shows the inside of a page of lines that is taken apart.
func (d *dumper) fields(stored []byte) {
	s := scan{b: stored[1 : len(stored)-crcBytes]}
	s.uvarint()
	a := newAnnotator(d, s.b)
	var hard []byte
	a.show(func() string { hard = a.s.bytes(); return fmt.Sprintf("%d bytes of hexadecimal digits", len(hard)) })
	if a.s.bad || len(a.s.b) == 0 || a.s.b[0] == codecLines {
		return
	}
	begin := len(a.payload) - len(a.s.b)
	fmt.Fprintf(d.w, "  %06d: # columns, as a page of %d bytes, whose payload is\n", begin, len(a.s.b))
	payload, err := openPage(a.s.b, maxPageBytes-1)
	if err != nil {
		fmt.Fprintf(d.w, "  %v\n", err)
		return
	}
	a = newAnnotator(d, payload)
	columns := a.uvarint("columns")
	var lens []int64
	for i := uint64(0); i < min(columns, maxFieldColumns) && !a.s.bad; i++ {
		lens = append(lens, dumpField(a, i)...)
	}
	for i, l := range lens {
		a.show(func() string { return fmt.Sprintf("fragment %d: %q", i, a.s.take(uint64(l))) })
	}
	a.end()
	fmt.Fprintf(d.w, "  the lines\n")
}

// dumpField shows a column and returns the lengths of what may follow it.
func dumpField(a *annotator, i uint64) []int64 {
	names := [...]string{"beginnings of lines", "numbers", "digits", "hexadecimal", "upper hexadecimal", "strings", "dates", "times of day"}
	kind := byte(0)
	a.show(func() string {
		kind = a.s.byte()
		return fmt.Sprintf("column %d: %s", i, append(names[:], "unknown")[min(int(kind), len(names))])
	})
	if kind >= fieldDigits && kind <= fieldHexUp {
		a.raw(1, "digits")
	}
	visits := int(min(a.uvarint("values"), maxPageBytes))
	entries := int(min(a.uvarint("fragments that follow"), uint64(visits)))
	lens := a.column(entries, "their lengths")
	a.column(entries, "columns behind them, 0: the line ends")
	if entries > 1 {
		a.column(visits, "which one follows")
	}
	switch kind {
	case fieldNumber, fieldDigits, fieldDate, fieldClock:
		a.column(visits, "values")
	case fieldString:
		for _, l := range a.column(visits, "lengths") {
			a.raw(uint64(l), "string")
		}
	}
	return lens
}
