package samples

import (
	"fmt"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// DumpSamples shows a page of samples.
func DumpSamples(a *file.Annotator) {
	var d sampleDir
	if err := d.decode(a.Payload); err != nil {
		fmt.Fprintf(a.Out, "  %v\n", err)
	}
	a.Raw(1, fmt.Sprintf("family %d", a.Scan.Rest[0]))
	flags := a.Raw(1, "flags (1: has starts, 2: has histograms)")
	a.Uvarint("first rank")
	ranks := a.Uvarint("ranks")
	counts := a.Column(int(min(ranks, file.MaxPageRanks)), "rows by rank")
	var mixed []int64
	if len(flags) == 1 && flags[0]&samplesHistograms != 0 {
		mixed = a.Column(len(counts), "series with histograms")
	}
	var end columnPos
	var shorts, longs []int
	var longMixed []bool
	for i, n := range counts {
		isMixed := i < len(mixed) && mixed[i] != 0
		switch {
		case n == 1:
			end.single++
		case n > 1:
			end.multi++
		}
		if n < shortRows && !isMixed {
			end.short += uint32(n)
		} else {
			longs, longMixed = append(longs, int(n)), append(longMixed, isMixed)
		}
	}
	for at := 0; at < int(end.short); at += blockRows {
		shorts = append(shorts, min(blockRows, int(end.short)-at))
	}
	dumpTimes(a, end)
	var layouts []layout
	if mixed != nil {
		layouts, _ = readLayouts(nil, d.layouts)
		dumpLayouts(a)
	}
	shortLens := a.Column(len(shorts), "lengths of the blocks of the page-wide column")
	longLens := a.Column(len(longs), "lengths of the segments of long series")
	if len(flags) == 1 && flags[0]&samplesStarts != 0 {
		shortStarts := a.Column(len(shorts), "lengths of the starts of the page-wide column")
		longStarts := a.Column(len(longs), "lengths of the starts of long series")
		for i := range shortStarts {
			a.Column(shorts[i], fmt.Sprintf("starts of block %d", i))
		}
		for i, n := range longStarts {
			if n > 0 {
				a.Column(longs[i], fmt.Sprintf("starts of long series %d", i))
			}
		}
	}
	for i, n := range shortLens {
		dumpSegment(a, n, shorts[i], fmt.Sprintf("block %d", i))
	}
	for i, n := range longLens {
		if what := fmt.Sprintf("long series %d", i); longMixed[i] {
			dumpMixed(a, layouts, n, longs[i], what)
		} else {
			dumpSegment(a, n, longs[i], what)
		}
	}
}

func dumpTimes(a *file.Annotator, end columnPos) {
	if end.single > 0 {
		mode := a.Raw(1, "times of series of one row (0: straight, 1: dictionary)")
		if len(mode) == 1 && mode[0] == singlesDict {
			a.Column(int(min(a.Uvarint("dictionary"), uint64(end.single))), "times")
			a.Column(int(end.single), "references")
		} else {
			a.Column(int(end.single), "times")
		}
	}
	if end.multi == 0 {
		return
	}
	n := int(min(a.Uvarint("sequences"), uint64(end.multi)))
	a.Varint("origin of times")
	a.Uvarint("unit of times")
	rows := a.Column(n, "times of the sequences")
	a.Column(n, "lengths of the sequences")
	a.Column(int(end.multi), "references to sequences")
	a.Column(int(end.multi), "where in them the times of a series begin")
	for i, times := range rows {
		if times < 0 || times > file.MaxPageRows {
			a.Scan.Fail()
			return
		}
		a.Column(int(times), fmt.Sprintf("sequence %d, in units since the origin", i))
	}
}

func dumpSegment(a *file.Annotator, size int64, rows int, what string) {
	a.Show(func() string {
		b := a.Scan.Next(uint64(size))
		if len(b) == 0 {
			a.Scan.Fail()
			return what
		}
		values, err := a.Values.Append(nil, b, rows)
		if err != nil {
			return fmt.Sprintf("%s: %v", what, err)
		}
		return fmt.Sprintf("%s: %s: %s", what, column.SegmentName(b), file.Few(floatsOf(values)))
	})
}
