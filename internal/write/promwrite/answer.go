package promwrite

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/write"
)

// answer is what a sender gets.
type answer struct {
	status     int
	text       string
	allow      string
	retryAfter time.Duration
}

func (a *answer) write(w http.ResponseWriter) {
	if a.allow != "" {
		w.Header().Set("Allow", a.allow)
	}
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(retrySeconds(a.retryAfter, rand.Float64())))
	}
	if a.text == "" {
		w.WriteHeader(a.status)
		return
	}
	http.Error(w, a.text, a.status)
}

// retrySeconds spreads senders that were refused at one time over half as long again; dice is in [0, 1).
func retrySeconds(d time.Duration, dice float64) int {
	whole := int((d + time.Second - 1) / time.Second)
	return max(whole, 1) + int(dice*float64(whole/2+1))
}

const (
	maxExamples     = 3
	maxExampleBytes = 500
)

// leaveOut counts samples of the series whose labels lie at that can never be stored.
func (w *walker) leaveOut(reason string, samples int, at span, why string) {
	i := 0
	for i < len(w.left) && w.left[i].Reason != reason {
		i++
	}
	if i == len(w.left) {
		w.left = append(w.left, write.Rejection{Reason: reason})
	}
	r := &w.left[i]
	r.Samples += samples
	if len(r.Examples) < maxExamples {
		r.Examples = append(r.Examples, w.describe(at)+": "+why)
	}
}

// describe writes the labels of a series for a message, as many as fit.
func (w *walker) describe(at span) string {
	sb := []byte{'{'}
	for name, value, rest, ok := at.bytes(w).Next(); ok && len(sb) < maxExampleBytes/2; name, value, rest, ok = rest.Next() {
		if len(sb) > 1 {
			sb = append(sb, ", "...)
		}
		sb = fmt.Appendf(sb, "%.100q=%.100q", name, value)
	}
	return string(sb[:min(len(sb), maxExampleBytes)]) + "}"
}

// leftOut is the answer to a request of which some samples can never be stored. It is a 400, on which senders drop the
// request: all that can be stored of it is durable.
func leftOut(stored int, left []write.Rejection) answer {
	n := 0
	for i := range left {
		n += left[i].Samples
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "%d samples are stored, %d are left out and need not be sent again:\n", stored, n)
	for i := range left {
		fmt.Fprintf(&sb, "%d %s\n", left[i].Samples, left[i].Reason)
		for _, e := range left[i].Examples {
			fmt.Fprintf(&sb, "  %s\n", e)
		}
	}
	return answer{status: http.StatusBadRequest, text: strings.TrimSuffix(sb.String(), "\n")}
}
