package promwrite

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// pending counts the rows of a series that are rejected for one reason. why explains the first of them.
type pending struct {
	reason string
	n      write.Counts
	why    string
}

// leaveOut rejects rows of the current series. It calls why only for the first row with a reason.
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

// reportLeftOut moves the pending rejections to those of the request. The labels of the series are
// known by now.
func (w *walker) reportLeftOut(labels span) {
	for _, p := range w.pending {
		w.left.AddAt(len(w.batch.Keys), p.reason, p.n, func() string { return w.describe(labels) + ": " + p.why })
	}
	w.pending = w.pending[:0]
}

// describe formats the labels of a series for an error text.
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
