package part

import (
	"fmt"
	"math"

	"github.com/shaledb/shale/internal/model"
)

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

func dumpMasks(a *annotator) {
	a.uvarint("first rank")
	n := a.uvarint("masks")
	a.show(func() string {
		var hex []string
		for _, mask := range a.ints.append(nil, &a.s, int(min(n, maxPageRanks))) {
			hex = append(hex, fmt.Sprintf("%x", uint64(mask)))
		}
		return "windows with rows: " + few(hex)
	})
}
