package promwrite

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// answer is what a sender gets.
type answer struct {
	status     int
	text       string
	allow      string
	retryAfter time.Duration
	// written says what of the request is durable. Senders of 2.0 are told always, those of 1.0 never: of them some take
	// the headers for a sign of 2.0.
	written write.Counts
}

// maxAnswerBytes bounds the text of an answer. Prometheus reads the first KiB.
const maxAnswerBytes = 8 << 10

// write sends the answer. The attempt is how often the sender has tried before, as it says.
func (a *answer) write(w http.ResponseWriter, v version, attempt int) {
	h := w.Header()
	if v == v2 {
		h.Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(a.written.Samples))
		h.Set("X-Prometheus-Remote-Write-Histograms-Written", strconv.Itoa(a.written.Histograms))
		h.Set("X-Prometheus-Remote-Write-Exemplars-Written", strconv.Itoa(a.written.Exemplars))
	}
	if a.allow != "" {
		h.Set("Allow", a.allow)
	}
	if a.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(retrySeconds(a.retryAfter, attempt, rand.Float64())))
	}
	if a.text == "" {
		w.WriteHeader(a.status)
		return
	}
	http.Error(w, shorten(a.text, maxAnswerBytes), a.status)
}

// shorten cuts a text to at most n bytes, and says so.
func shorten(text string, n int) string {
	const cut = " ..."
	if len(text) <= n {
		return text
	}
	return text[:n-len(cut)] + cut
}

// maxRetryAfter is the longest wait that is asked of a sender, but for the spread.
const maxRetryAfter = 30 * time.Second

// retrySeconds doubles the wait with each attempt, and spreads senders that were refused at one time over half as long
// again; dice is in [0, 1).
func retrySeconds(d time.Duration, attempt int, dice float64) int {
	for ; attempt > 0 && d < maxRetryAfter; attempt-- {
		d *= 2
	}
	d = min(d, maxRetryAfter)
	whole := int((d + time.Second - 1) / time.Second)
	return max(whole, 1) + int(dice*float64(whole/2+1))
}

// attemptOf reads how often a sender has tried before. Senders other than Prometheus do not say.
func attemptOf(h http.Header) int {
	n, err := strconv.Atoi(h.Get("Retry-Attempt"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// answerOf turns the error of a request into its answer. What is not known to be the sender's fault is a 503, which
// senders repeat.
func answerOf(err error) answer {
	var r *write.Refused
	switch {
	case errors.As(err, &r):
		return answer{status: r.Status, text: r.Error(), retryAfter: r.RetryAfter}
	case errors.Is(err, model.ErrInvalid):
		return answer{status: http.StatusBadRequest, text: err.Error()}
	}
	return answer{status: http.StatusServiceUnavailable, text: err.Error(), retryAfter: 5 * time.Second}
}
