package text

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// Dump shows the page of metadata of a unit.
func Dump(a *file.Annotator) {
	a.Raw(1, "family 3")
	flags := a.Raw(1, "flags (1: has metadata)")
	n := 0
	for _, c := range a.Column(int(min(a.Uvarint("ranks"), file.MaxPageRanks)), "rows by rank") {
		if n += int(c); c < 0 || n > MaxUnitRows {
			a.Scan.Fail()
			return
		}
	}
	a.Column(n, "times")
	a.Column(n, "lengths of lines")
	if len(flags) != 1 || flags[0]&textMetadata == 0 {
		return
	}
	sets := int(min(a.Uvarint("sets of metadata"), uint64(n)))
	a.Column(n, "set of each row, from 1; 0: none")
	names := a.Uvarint("names")
	for i := uint64(0); i < names && !a.Scan.Bad; i++ {
		a.Text("name")
		dumpValues(a, sets)
	}
}

// dumpValues shows the column of a name of metadata.
func dumpValues(a *file.Annotator, sets int) {
	values := 0
	for _, has := range a.Column(sets, "which sets have it") {
		values += int(has & 1)
	}
	kind, count := a.Raw(1, "values (0: as they come, 1: each once)"), values
	if len(kind) == 1 && kind[0] == metadataDict {
		count = int(min(a.Uvarint("distinct values"), uint64(values)))
	}
	for i, l := range a.Column(count, "lengths") {
		a.Show(func() string { return fmt.Sprintf("value %d: %q", i, a.Scan.Next(uint64(l))) })
	}
	if len(kind) == 1 && kind[0] == metadataDict {
		a.Column(values, "values")
	}
}

func dumpFilters(a *file.Annotator) {
	var p filterPage
	err := p.decode(a.Payload, file.Addr{})
	a.Uvarint("filters")
	a.Raw(1, "number of slices")
	if err != nil {
		a.Raw(uint64(len(a.Scan.Rest)), err.Error())
		return
	}
	if p.slices > 0 {
		a.Uvarint("bytes of each slice")
	}
	for i := range p.filters {
		a.Raw(1, fmt.Sprintf("filter %d: classes (1: words, 2: long runs, 4: runs, 8: dotted numbers, 16: metadata)", i))
		for class := range lines.ItemClasses {
			if p.filters[i].Classes>>class&1 != 0 {
				a.Raw(1, fmt.Sprintf("hashes of class %d", 1<<class))
				a.Uvarint("length of its bits")
			}
		}
	}
	for i := range p.filters {
		for class, n := range p.filters[i].Lens {
			if n > 0 && !p.divided(n) {
				a.Raw(uint64(n), fmt.Sprintf("filter %d: bits of class %d", i, 1<<class))
			}
		}
	}
}

// ListPages lists the page of lines of a unit, and the pages of its filter.
func ListPages(ctx context.Context, pages file.Pages, seen map[file.Addr]bool, e *file.Entry) (extra []file.ExtraPage, err error) {
	if e.Text.Lines.Len > 0 {
		extra = append(extra, file.ExtraPage{Addr: e.Text.Lines, Name: "lines", Dump: dumpRaw("lines")})
	}
	f := e.Text.Filter
	if f.Len == 0 || seen[f] {
		return extra, nil
	}
	seen[f] = true
	extra = append(extra, file.ExtraPage{Addr: f, Name: "filters", Dump: dumpFilters})
	slices, err := sliceAddrs(ctx, pages, f)
	for _, a := range slices {
		extra = append(extra, file.ExtraPage{Addr: a, Name: "a slice of filters", Dump: dumpRaw("bits")})
	}
	return extra, err
}

func dumpRaw(what string) func(a *file.Annotator) {
	return func(a *file.Annotator) { a.Raw(uint64(len(a.Payload)), what) }
}
