package receive

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// Response is what a handler sends.
type Response struct {
	Status     int
	Text       string
	RetryAfter time.Duration
	// Stored counts the rows of the request that are durable.
	Stored write.Counts
	// Rejected counts the rows that were left out of a request whose other rows are durable.
	Rejected int
}

// MaxTextBytes bounds the text of a response. Prometheus reads the first KiB.
const MaxTextBytes = 8 << 10

// refusal turns the error of a request into a response. An error that is not known to be the sender's
// fault gives 503, which senders retry.
func refusal(err error) Response {
	var r *write.Refused
	switch {
	case errors.As(err, &r):
		return Response{Status: r.Status, Text: r.Error(), RetryAfter: r.RetryAfter}
	case errors.Is(err, model.ErrInvalid):
		return Response{Status: http.StatusBadRequest, Text: strings.TrimPrefix(err.Error(), model.ErrInvalid.Error()+": ")}
	}
	return Response{Status: http.StatusServiceUnavailable, Text: err.Error(), RetryAfter: 5 * time.Second}
}

// Unsupported returns a 415 for a header whose value the protocol does not support.
func Unsupported(header, value, supported string) error {
	return &write.Refused{
		Status: http.StatusUnsupportedMediaType, Text: fmt.Sprintf("%s %.200q is not supported; %s", header, value, supported),
	}
}

// WriteText sends the response as plain text.
func (r *Response) WriteText(w http.ResponseWriter) {
	r.setHeaders(w.Header())
	if r.Text == "" {
		w.WriteHeader(r.Status)
		return
	}
	http.Error(w, r.BoundedText(), r.Status)
}

// WriteBody sends the response with a body in the form of the protocol.
func (r *Response) WriteBody(w http.ResponseWriter, contentType string, body []byte) {
	r.setHeaders(w.Header())
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(r.Status)
	_, _ = w.Write(body) // a sender that has gone away needs no response
}

// BoundedText returns the text, cut to MaxTextBytes.
func (r *Response) BoundedText() string {
	const cut = " ..."
	if len(r.Text) <= MaxTextBytes {
		return r.Text
	}
	return r.Text[:MaxTextBytes-len(cut)] + cut
}

func (r *Response) setHeaders(h http.Header) {
	if r.Status == http.StatusMethodNotAllowed {
		h.Set("Allow", http.MethodPost)
	}
	if r.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(retrySeconds(r.RetryAfter, rand.Float64())))
	}
}

// retrySeconds adds up to half of the wait, so that senders that were refused together come back
// apart; dice is in [0, 1).
func retrySeconds(wait time.Duration, dice float64) int {
	whole := int((wait + time.Second - 1) / time.Second)
	return whole + int(dice*float64(whole/2+1))
}
