package series

import (
	"fmt"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// DumpKeys shows a page of keys.
func DumpKeys(a *file.Annotator) {
	rank := a.Uvarint("first rank")
	n := a.Uvarint("keys")
	for i := uint64(0); i < n && !a.Scan.Bad; i += restartRanks {
		a.Raw(8, fmt.Sprintf("rank %d: upper half, big-endian", rank+i))
		a.Raw(4, "end of the differences after it")
	}
	for i := uint64(0); i < n && !a.Scan.Bad; i++ {
		if i%restartRanks > 0 {
			a.Uvarint(fmt.Sprintf("rank %d: upper half, less the one before", rank+i))
		}
	}
	for i := uint64(0); i < n && !a.Scan.Bad; i++ {
		a.Raw(8, fmt.Sprintf("rank %d: lower half, little-endian", rank+i))
	}
}

// DumpLabels shows a page of label sets.
func DumpLabels(a *file.Annotator) {
	rank := a.Uvarint("first rank")
	n := a.Uvarint("label sets")
	a.Raw(4*((n+restartRanks-1)/restartRanks), "offsets of the sets that are whole")
	d := LabelDir{rest: a.Scan}
	for i := uint64(0); i < n && !a.Scan.Bad; i++ {
		a.Show(func() string {
			if err := d.step(); err != nil {
				a.Scan.Fail()
				return err.Error()
			}
			a.Scan = d.rest
			return fmt.Sprintf("rank %d: %s", rank+i, model.Labels(d.labels))
		})
	}
}

// DumpPostings shows a page of postings.
func DumpPostings(a *file.Annotator) {
	a.Uvarint("tenant")
	n := a.Uvarint("entries")
	d := postingDir{left: int(min(n, math.MaxInt32)), rest: a.Scan}
	for i := uint64(0); i < n && !a.Scan.Bad; i++ {
		a.Show(func() string {
			if ok, err := d.next(); !ok {
				a.Scan.Fail()
				return fmt.Sprint(err)
			}
			a.Scan = d.rest
			var runs rankRuns
			err := d.runs(1<<32-1, func(from, to uint32) { runs = append(runs, rankRun{from, to}) })
			if err != nil {
				return err.Error()
			}
			return fmt.Sprintf("%q=%q: %d ranks in runs from the tenant's first: %s", d.name, d.value, d.count, file.Few(runs))
		})
	}
}

// DumpMasks shows a page of masks.
func DumpMasks(a *file.Annotator) {
	a.Uvarint("first rank")
	n := a.Uvarint("masks")
	a.Show(func() string {
		var hex []string
		for _, mask := range a.Ints.Append(nil, &a.Scan, int(min(n, file.MaxPageRanks))) {
			hex = append(hex, fmt.Sprintf("%x", uint64(mask)))
		}
		return "windows with rows: " + file.Few(hex)
	})
}
