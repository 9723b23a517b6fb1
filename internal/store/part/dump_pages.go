package part

import (
	"fmt"
	"math"

	"github.com/shaledb/shale/internal/model"
)

func dumpIndex(a *annotator, s section, size int64) {
	dumpSection(a, s)
	n := a.uvarint("entries")
	for i := uint64(0); i < n && !a.s.bad; i += indexRun {
		a.raw(4, fmt.Sprintf("where entries up to %d end", min(i+indexRun, n)-1))
	}
	for i := uint64(0); i < n && !a.s.bad; i += indexRun {
		dumpEntries(a, s, min(indexRun, n-i), size)
	}
}

func dumpSection(a *annotator, s section) {
	a.show(func() string { return fmt.Sprintf("section %d: %s", a.s.byte(), s) })
	a.show(func() string { return fmt.Sprintf("family %d", a.s.byte()) })
}

func dumpEntries(a *annotator, s section, n uint64, size int64) {
	var c entryCoder
	for i := uint64(0); i < n && !a.s.bad; i++ {
		a.show(func() string {
			e := c.read(&a.s, s, size)
			place := fmt.Sprintf("[%d, %d)", e.addr.Off, e.addr.Off+int64(e.addr.Len))
			switch {
			case s == postingSection:
				return fmt.Sprintf("%s: tenant %d from %q=%q", place, e.tenant, e.name, e.value)
			case s == keySection:
				return fmt.Sprintf("%s: ranks %d..%d from key %s", place, e.rank0, e.last(), e.key)
			case s == textSection && e.text.lines > 0 && e.text.filter.Len > 0:
				return fmt.Sprintf("%s: ranks %d..%d, %d rows in [%d, %d]; %d bytes of lines in [%d, %d); filter %d in [%d, %d)", place, e.rank0, e.last(), e.rows,
					e.times.Min, e.times.Max, e.text.bytes, e.linesAddr().Off, e.end(), e.text.number, e.text.filter.Off, e.text.filter.Off+int64(e.text.filter.Len))
			case s == textSection:
				return fmt.Sprintf("%s: ranks %d..%d, %d rows in [%d, %d]; %d bytes of lines in the next %d", place, e.rank0, e.last(), e.rows,
					e.times.Min, e.times.Max, e.text.bytes, e.text.lines)
			case s.rows():
				return fmt.Sprintf("%s: ranks %d..%d, %d rows in [%d, %d]", place, e.rank0, e.last(), e.rows, e.times.Min, e.times.Max)
			}
			return fmt.Sprintf("%s: ranks %d..%d", place, e.rank0, e.last())
		})
	}
}

func dumpKeys(a *annotator) {
	rank := a.uvarint("first rank")
	n := a.uvarint("keys")
	for i := uint64(0); i < n && !a.s.bad; i += restartRanks {
		a.raw(8, fmt.Sprintf("rank %d: upper half, big-endian", rank+i))
		a.raw(4, "end of the differences behind it")
	}
	for i := uint64(0); i < n && !a.s.bad; i++ {
		if i%restartRanks > 0 {
			a.uvarint(fmt.Sprintf("rank %d: upper half, less the one before", rank+i))
		}
	}
	for i := uint64(0); i < n && !a.s.bad; i++ {
		a.raw(8, fmt.Sprintf("rank %d: lower half, little-endian", rank+i))
	}
}

func dumpLabels(a *annotator) {
	rank := a.uvarint("first rank")
	n := a.uvarint("label sets")
	a.raw(4*((n+restartRanks-1)/restartRanks), "offsets of the sets that are whole")
	d := labelDir{rest: a.s}
	for i := uint64(0); i < n && !a.s.bad; i++ {
		a.show(func() string {
			if err := d.step(); err != nil {
				a.s.fail()
				return err.Error()
			}
			a.s = d.rest
			return fmt.Sprintf("rank %d: %s", rank+i, model.Labels(d.labels))
		})
	}
}

func dumpPostings(a *annotator) {
	a.uvarint("tenant")
	n := a.uvarint("entries")
	d := postingDir{left: int(min(n, math.MaxInt32)), rest: a.s}
	for i := uint64(0); i < n && !a.s.bad; i++ {
		a.show(func() string {
			if ok, err := d.next(); !ok {
				a.s.fail()
				return fmt.Sprint(err)
			}
			a.s = d.rest
			var runs rankRuns
			err := d.runs(1<<32-1, func(from, to uint32) { runs = append(runs, rankRun{from, to}) })
			if err != nil {
				return err.Error()
			}
			return fmt.Sprintf("%q=%q: %d ranks in runs from the tenant's first: %s", d.name, d.value, d.count, few(runs))
		})
	}
}

func dumpSamples(a *annotator) {
	var d sampleDir
	if err := d.open(a.payload); err != nil {
		fmt.Fprintf(a.d.w, "  %v\n", err)
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

func segmentName(b []byte) string {
	param := b[0] >> 3
	switch b[0] & valuesCodec {
	case valuesDecimal:
		return fmt.Sprintf("decimals of %d places, %s", param, intsName(b[1:]))
	case valuesPatched:
		return fmt.Sprintf("decimals of %d places with exceptions", param)
	case valuesBits:
		return fmt.Sprintf("bits without the lowest %d, %s", 2*param, intsName(b[1:]))
	case valuesNear:
		return fmt.Sprintf("near decimals of %d places, %s; and units in the last place", param, intsName(b[1:]))
	case valuesXor:
		return "xor"
	case valuesRaw:
		return "raw"
	}
	return "unknown codec"
}
