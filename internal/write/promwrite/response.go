package promwrite

import (
	"net/http"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/write/receive"
)

// writeResponse sends a response. Version 2.0 always includes the headers with the number of durable
// rows. Version 1.0 never does, because some senders take them as a sign of 2.0. attempt is how often
// the sender has retried.
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

// maxRetryAfter bounds Retry-After before the jitter.
const maxRetryAfter = 30 * time.Second

// backoff doubles a wait with each attempt. A wait of zero stays zero.
func backoff(wait time.Duration, attempt int) time.Duration {
	for ; attempt > 0 && wait > 0 && wait < maxRetryAfter; attempt-- {
		wait *= 2
	}
	return min(wait, maxRetryAfter)
}

// attemptOf returns how often the sender has retried. Only Prometheus sends that header.
func attemptOf(h http.Header) int {
	n, err := strconv.Atoi(h.Get("Retry-Attempt"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
