package part

import (
	"fmt"
)

func dumpSamples(a *annotator) {
	var d sampleDir
	if err := d.open(a.payload); err != nil {
		fmt.Fprintf(a.w, "  %v\n", err)
	}
	a.raw(1, fmt.Sprintf("family %d", a.s.b[0]))
	flags := a.raw(1, "flags (1: has starts, 2: has histograms)")
	a.uvarint("first rank")
	ranks := a.uvarint("ranks")
	counts := a.column(int(min(ranks, maxPageRanks)), "rows by rank")
	var mixed []int64
	if len(flags) == 1 && flags[0]&samplesHistograms != 0 {
		mixed = a.column(len(counts), "series with histograms")
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
	shortLens := a.column(len(shorts), "lengths of the blocks of the page-wide column")
	longLens := a.column(len(longs), "lengths of the segments of long series")
	if len(flags) == 1 && flags[0]&samplesStarts != 0 {
		shortStarts := a.column(len(shorts), "lengths of the starts of the page-wide column")
		longStarts := a.column(len(longs), "lengths of the starts of long series")
		for i := range shortStarts {
			a.column(shorts[i], fmt.Sprintf("starts of block %d", i))
		}
		for i, n := range longStarts {
			if n > 0 {
				a.column(longs[i], fmt.Sprintf("starts of long series %d", i))
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

func dumpTimes(a *annotator, end columnPos) {
	if end.single > 0 {
		mode := a.raw(1, "times of series of one row (0: straight, 1: dictionary)")
		if len(mode) == 1 && mode[0] == singlesDict {
			a.column(int(min(a.uvarint("dictionary"), uint64(end.single))), "times")
			a.column(int(end.single), "references")
		} else {
			a.column(int(end.single), "times")
		}
	}
	if end.multi == 0 {
		return
	}
	n := int(min(a.uvarint("sequences"), uint64(end.multi)))
	a.varint("origin of times")
	a.uvarint("unit of times")
	rows := a.column(n, "times of the sequences")
	a.column(n, "lengths of the sequences")
	a.column(int(end.multi), "references to sequences")
	a.column(int(end.multi), "where in them the times of a series begin")
	for i, times := range rows {
		if times < 0 || times > maxPageRows {
			a.s.fail()
			return
		}
		a.column(int(times), fmt.Sprintf("sequence %d, in units since the origin", i))
	}
}

func dumpSegment(a *annotator, size int64, rows int, what string) {
	a.show(func() string {
		b := a.s.take(uint64(size))
		if len(b) == 0 {
			a.s.fail()
			return what
		}
		values, err := a.values.append(nil, b, rows)
		if err != nil {
			return fmt.Sprintf("%s: %v", what, err)
		}
		return fmt.Sprintf("%s: %s: %s", what, segmentName(b), few(floatsOf(values)))
	})
}
