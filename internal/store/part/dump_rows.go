package part

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// dumpLayouts shows the layouts of the histograms of a page.
func dumpLayouts(a *annotator) {
	a.uvarint("bytes of layouts of histograms")
	shapes := a.uvarint("shapes")
	for i := uint64(0); i < shapes && !a.s.bad; i++ {
		a.show(func() string {
			h := readShape(&a.s)
			return fmt.Sprintf("shape %d: gauge %t, float %t, schema %d, zero threshold %v, custom bounds %s", i, h.Gauge, h.Float, h.Schema,
				math.Float64frombits(h.ZeroThreshold), few(floatsOf(h.Custom)))
		})
	}
	layouts := a.uvarint("layouts")
	for i := uint64(0); i < layouts && !a.s.bad; i++ {
		a.show(func() string {
			shape := a.s.uvarint()
			positive, n := readSpans(&a.s)
			negative, m := readSpans(&a.s)
			return fmt.Sprintf("layout %d: shape %d, %d positive buckets in spans %s, %d negative in %s", i+1, shape, n, few(positive), m, few(negative))
		})
	}
}

func floatsOf(values []uint64) []float64 {
	floats := make([]float64, len(values))
	for i, v := range values {
		floats[i] = math.Float64frombits(v)
	}
	return floats
}

// dumpMixed shows the segment of a series that has histograms.
func dumpMixed(a *annotator, layouts []layout, size int64, rows int, what string) {
	whole := a.s
	a.s = scan{b: whole.take(uint64(size)), bad: whole.bad}
	// Offsets count to the end of the payload: what follows the segment must not.
	payload := a.payload
	a.payload = a.payload[:len(a.payload)-len(whole.b)]
	refs := a.column(rows, what+": layouts of its rows, 0: float")
	groups := map[int64]int{}
	most := int64(0)
	for _, ref := range refs {
		groups[ref]++
		most = max(most, min(ref, int64(len(layouts))))
	}
	for ref := int64(0); ref <= most; ref++ {
		if n := groups[ref]; n > 0 {
			dumpGroup(a, layouts, ref, n)
		}
	}
	a.end()
	a.s, a.payload = whole, payload
}

func dumpGroup(a *annotator, layouts []layout, ref int64, n int) {
	names := []string{"floats"}
	ints := 0
	if ref > 0 {
		l := &layouts[ref-1]
		names = []string{"zero count"}
		for i := range l.positive {
			names = append(names, fmt.Sprintf("positive bucket %d", i))
		}
		for i := range l.negative {
			names = append(names, fmt.Sprintf("negative bucket %d", i))
		}
		names = append(names, "count", "sum")
		if !l.h.Float {
			ints = len(names) - 1
			names[ints-1] = "count, less that of all buckets"
		}
	}
	what := fmt.Sprintf("layout %d, %d rows", ref, n)
	if n < columnRows {
		a.column(ints, what+": all but the sum, of the first row")
		a.column(ints*(n-1), what+": by number, how much more the others have")
		dumpSized(a, n*(len(names)-ints), what+": "+strings.Join(slices.Compact([]string{names[ints], names[len(names)-1]}), " to "))
		return
	}
	for i, name := range names {
		if i < ints {
			a.column(n, what+": "+name)
		} else {
			dumpSized(a, n, what+": "+name)
		}
	}
}

func dumpSized(a *annotator, n int, what string) {
	size := a.uvarint("length of what follows")
	dumpSegment(a, int64(min(size, maxPageBytes)), n, what)
}

func dumpExemplars(a *annotator) {
	a.show(func() string { return fmt.Sprintf("family %d", a.s.byte()) })
	a.raw(1, "flags")
	a.uvarint("first rank")
	n := 0
	for _, c := range a.column(int(min(a.uvarint("ranks"), maxPageRanks)), "rows by rank") {
		if n += int(c); c < 0 || n > maxPageRows {
			a.s.fail()
			return
		}
	}
	a.column(n, "times")
	dumpSized(a, n, "values")
	a.column(n, "label sets of the rows")
	sets := a.uvarint("label sets")
	var d labelDir
	for i := uint64(0); i < sets && !a.s.bad; i++ {
		a.show(func() string {
			l, err := d.read(&a.s, i == 0)
			if err != nil {
				a.s.fail()
				return err.Error()
			}
			return fmt.Sprintf("set %d: %s", i, l)
		})
	}
}
