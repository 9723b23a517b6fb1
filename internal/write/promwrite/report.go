package promwrite

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/receive"
)

// report is the outcome of a pushed request.
type report struct {
	stored write.Counts
	// other counts samples of replicas that are not elected. The sender is told that they are written, since
	// those of the leader stand for them: Prometheus takes it for a failure if nothing is.
	other write.Counts
	// repeated counts rows of a new leader that the one before has written: the same holds for them.
	repeated write.Counts
	left     write.Rejections
	// empty counts the version 2 time series without any content. emptyExample is the first of them.
	empty        int
	emptyExample string
}

// response returns 204 if nothing was rejected. Otherwise it returns 400, so that the sender drops the
// request: all rows that can be stored are durable. Rejected exemplars alone do not make a version 1
// request fail, because its sender would count all samples as lost.
func (r *report) response(v version) receive.Response {
	left, written := r.left.Counts(), r.stored
	written.Add(r.other)
	written.Add(r.repeated)
	if r.empty == 0 && (left.Total() == 0 || v == v1 && left.Samples+left.Histograms == 0) {
		return receive.Response{Status: http.StatusNoContent, Stored: written}
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s stored, %s left out, which need not be sent again:\n", r.stored, left)
	for i := range r.left {
		fmt.Fprintf(&sb, "%d %s\n", r.left[i].Samples, r.left[i].Reason)
	}
	if r.empty > 0 {
		fmt.Fprintf(&sb, "%d time series without samples, histograms or exemplars\n  %s\n", r.empty, r.emptyExample)
	}
	for i := range r.left {
		for _, e := range r.left[i].Examples {
			fmt.Fprintf(&sb, "  %s: %s\n", r.left[i].Reason, e)
		}
	}
	return receive.Response{Status: http.StatusBadRequest, Text: strings.TrimSuffix(sb.String(), "\n"), Stored: written}
}
