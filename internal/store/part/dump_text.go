package part

import (
	"context"
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

// unitPages lists the page of lines of a unit, and the pages of its filter.
func unitPages(ctx context.Context, pages Pages, seen map[Addr]bool, e *pageEntry) (extra []extraPage, err error) {
	if e.text.lines > 0 {
		extra = append(extra, extraPage{e.linesAddr(), "lines", dumpRaw("lines")})
	}
	f := e.text.filter
	if f.Len == 0 || seen[f] {
		return extra, nil
	}
	seen[f] = true
	extra = append(extra, extraPage{f, "filters", dumpFilters})
	slices, err := sliceAddrs(ctx, pages, f)
	for _, a := range slices {
		extra = append(extra, extraPage{a, "a slice of filters", dumpRaw("bits")})
	}
	return extra, err
}

func dumpRaw(what string) func(a *annotator) {
	return func(a *annotator) { a.raw(uint64(len(a.payload)), what) }
}
