package promwrite

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// pending is what is left out of a series for one reason. Why is of the first such row.
type pending struct {
	reason string
	n      write.Counts
	why    string
}

// leaveOut notes rows of the series that is being read that can never be stored. Why is called for the first of a reason.
func (w *walker) leaveOut(reason string, n write.Counts, why func() string) {
	for i := range w.pending {
		if w.pending[i].reason == reason {
			w.pending[i].n.Add(n)
			return
		}
	}
	w.pending = append(w.pending, pending{reason, n, why()})
}

func (w *walker) leaveOutTime(n write.Counts, ms, startMs int64) {
	what, t := "time", ms
	if _, ok := nanoseconds(ms); ok {
		what, t = "start timestamp", startMs
	}
	w.leaveOut(write.ReasonTimeRange, n, outOfRange(what, t))
}

func outOfRange(what string, ms int64) func() string {
	return func() string { return fmt.Sprintf("the %s %d ms is not between the years 1677 and 2262", what, ms) }
}

// reportLeftOut moves what is pending to what is left out of the request, now that it is known where the labels lie.
func (w *walker) reportLeftOut(labels span) {
	for _, p := range w.pending {
		w.left.Add(p.reason, p.n, func() string { return w.describe(labels) + ": " + p.why })
	}
	w.pending = w.pending[:0]
}

// describe writes the labels of a series for a message.
func (w *walker) describe(labels span) string {
	var lb model.LabelsBuilder
	if w.version == v2 {
		if !w.buildReferenced(labels, &lb) {
			return w.describeReferences(labels)
		}
	} else {
		w.buildPlain(labels, &lb)
	}
	return write.Describe(&lb)
}
