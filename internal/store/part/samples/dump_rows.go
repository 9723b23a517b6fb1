package samples

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/series"
)

// dumpLayouts shows the layouts of the histograms of a page.
func dumpLayouts(a *file.Annotator) {
	a.Uvarint("bytes of layouts of histograms")
	shapes := a.Uvarint("shapes")
	for i := uint64(0); i < shapes && !a.Scan.Bad; i++ {
		a.Show(func() string {
			h := readShape(&a.Scan)
			return fmt.Sprintf("shape %d: gauge %t, float %t, schema %d, zero threshold %v, custom bounds %s", i, h.Gauge, h.Float, h.Schema,
				math.Float64frombits(h.ZeroThreshold), file.Few(floatsOf(h.Custom)))
		})
	}
	layouts := a.Uvarint("layouts")
	for i := uint64(0); i < layouts && !a.Scan.Bad; i++ {
		a.Show(func() string {
			shape := a.Scan.Uvarint()
			positive, n := readSpans(&a.Scan)
			negative, m := readSpans(&a.Scan)
			return fmt.Sprintf("layout %d: shape %d, %d positive buckets in spans %s, %d negative in %s", i+1, shape, n, file.Few(positive), m, file.Few(negative))
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
func dumpMixed(a *file.Annotator, layouts []layout, size int64, rows int, what string) {
	whole := a.Scan
	a.Scan = column.Scan{Rest: whole.Next(uint64(size)), Bad: whole.Bad}
	// Offsets count to the end of the payload: what follows the segment must not.
	payload := a.Payload
	a.Payload = a.Payload[:len(a.Payload)-len(whole.Rest)]
	refs := a.Column(rows, what+": layouts of its rows, 0: float")
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
	a.End()
	a.Scan, a.Payload = whole, payload
}

func dumpGroup(a *file.Annotator, layouts []layout, ref int64, n int) {
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
		a.Column(ints, what+": all but the sum, of the first row")
		a.Column(ints*(n-1), what+": by number, how much more the others have")
		dumpSized(a, n*(len(names)-ints), what+": "+strings.Join(slices.Compact([]string{names[ints], names[len(names)-1]}), " to "))
		return
	}
	for i, name := range names {
		if i < ints {
			a.Column(n, what+": "+name)
		} else {
			dumpSized(a, n, what+": "+name)
		}
	}
}

func dumpSized(a *file.Annotator, n int, what string) {
	size := a.Uvarint("length of what follows")
	dumpSegment(a, int64(min(size, file.MaxPageBytes)), n, what)
}

// DumpExemplars shows a page of exemplars.
func DumpExemplars(a *file.Annotator) {
	a.Show(func() string { return fmt.Sprintf("family %d", a.Scan.Byte()) })
	a.Raw(1, "flags")
	a.Uvarint("first rank")
	n := 0
	for _, c := range a.Column(int(min(a.Uvarint("ranks"), file.MaxPageRanks)), "rows by rank") {
		if n += int(c); c < 0 || n > file.MaxPageRows {
			a.Scan.Fail()
			return
		}
	}
	a.Column(n, "times")
	dumpSized(a, n, "values")
	a.Column(n, "label sets of the rows")
	sets := a.Uvarint("label sets")
	var d series.LabelDir
	for i := uint64(0); i < sets && !a.Scan.Bad; i++ {
		a.Show(func() string {
			l, err := d.Read(&a.Scan, i == 0)
			if err != nil {
				a.Scan.Fail()
				return err.Error()
			}
			return fmt.Sprintf("set %d: %s", i, l)
		})
	}
}
