package lokipush

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
)

// answer is what a sender gets.
type answer struct {
	status     int
	text       string
	allow      string
	retryAfter time.Duration
}

// maxAnswerBytes bounds the text of an answer.
const maxAnswerBytes = 8 << 10

func (a *answer) write(w http.ResponseWriter) {
	if a.allow != "" {
		w.Header().Set("Allow", a.allow)
	}
	if a.retryAfter > 0 {
		// Senders that were refused at one time come back spread over half as long again.
		seconds := int((a.retryAfter + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.Itoa(seconds+rand.IntN(seconds/2+1)))
	}
	if a.text == "" {
		w.WriteHeader(a.status)
		return
	}
	if len(a.text) > maxAnswerBytes {
		a.text = a.text[:maxAnswerBytes-4] + " ..."
	}
	http.Error(w, a.text, a.status)
}

// answerOf turns the error of a request into its answer. What is not known to be the sender's fault is a 503, which
// senders repeat.
func answerOf(err error) answer {
	var r *write.Refused
	switch {
	case errors.As(err, &r):
		return answer{status: r.Status, text: r.Error(), retryAfter: r.RetryAfter}
	case errors.Is(err, model.ErrInvalid):
		return answer{status: http.StatusBadRequest, text: strings.TrimPrefix(err.Error(), model.ErrInvalid.Error()+": ")}
	}
	return answer{status: http.StatusServiceUnavailable, text: err.Error(), retryAfter: 5 * time.Second}
}

// report gives 204 if nothing is left out, and else 400, on which senders drop the request: all that can be stored of it
// is durable.
func report(left write.Rejections) answer {
	if len(left) == 0 {
		return answer{status: http.StatusNoContent}
	}
	return answer{status: http.StatusBadRequest, text: logs.Report(left)}
}
