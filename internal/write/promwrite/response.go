package promwrite

import (
	"net/http"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/write/receive"
)

// writeResponse sends a response. Senders of 2.0 are always told how many rows are durable, those of 1.0 never: some
// of them take the headers for a sign of 2.0. The attempt is how often the sender says that it has tried before.
func writeResponse(w http.ResponseWriter, r *receive.Response, v version, attempt int) {
	if v == v2 {
		h := w.Header()
		h.Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(r.Stored.Samples))
		h.Set("X-Prometheus-Remote-Write-Histograms-Written", strconv.Itoa(r.Stored.Histograms))
		h.Set("X-Prometheus-Remote-Write-Exemplars-Written", strconv.Itoa(r.Stored.Exemplars))
	}
	r.RetryAfter = backoff(r.RetryAfter, attempt)
	r.WriteText(w)
}

// maxRetryAfter is the longest wait that a sender is asked for, before the jitter.
const maxRetryAfter = 30 * time.Second

// backoff doubles a wait with each attempt; no wait stays none.
func backoff(wait time.Duration, attempt int) time.Duration {
	for ; attempt > 0 && wait > 0 && wait < maxRetryAfter; attempt-- {
		wait *= 2
	}
	return min(wait, maxRetryAfter)
}

// attemptOf reads how often a sender has tried before. Only Prometheus says so.
func attemptOf(h http.Header) int {
	n, err := strconv.Atoi(h.Get("Retry-Attempt"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
