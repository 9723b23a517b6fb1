package promwrite

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/receive"
)

// report is what a request that was pushed has come to.
type report struct {
	stored write.Counts
	left   write.Rejections
	// empty counts the time series of version 2 that hold nothing, and emptyExample is the first one.
	empty        int
	emptyExample string
}

// response gives 204 if all is stored, and else 400, on which senders drop the request: all that can be stored of it is
// durable. Exemplars that are left out of a request of version 1 are not told: a sender of that version would take all
// of its samples for lost.
func (r *report) response(v version) receive.Response {
	left := r.left.Counts()
	if r.empty == 0 && (left.Total() == 0 || v == v1 && left.Samples+left.Histograms == 0) {
		return receive.Response{Status: http.StatusNoContent, Stored: r.stored}
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s are stored, %s are left out and need not be sent again:\n", r.stored, left)
	for i := range r.left {
		fmt.Fprintf(&sb, "%d %s\n", r.left[i].Samples, r.left[i].Reason)
	}
	if r.empty > 0 {
		fmt.Fprintf(&sb, "%d time series have neither samples nor histograms nor exemplars\n  %s\n", r.empty, r.emptyExample)
	}
	for i := range r.left {
		for _, e := range r.left[i].Examples {
			fmt.Fprintf(&sb, "  %s: %s\n", r.left[i].Reason, e)
		}
	}
	return receive.Response{Status: http.StatusBadRequest, Text: strings.TrimSuffix(sb.String(), "\n"), Stored: r.stored}
}
