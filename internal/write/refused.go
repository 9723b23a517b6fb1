package write

import (
	"fmt"
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Refused is a request that was not taken, or not taken whole, with everything its sender needs: which limit, what to
// do, and whether to come back.
type Refused struct {
	// Status is the HTTP status. It decides what senders do: they retry 5xx and, mostly, drop on 4xx.
	Status int
	// Limit is the setting or resource that was hit, in the spelling of the configuration.
	Limit string
	// Text says what happened, to whom, and what helps.
	Text string
	// RetryAfter is when to come back; zero for what can never succeed.
	RetryAfter time.Duration
	// Closed says that this process takes nothing any more. Another one, or this one after its restart, may.
	Closed bool
}

// Error returns the text with the name of the limit.
func (r *Refused) Error() string {
	if r.Limit == "" {
		return r.Text
	}
	return fmt.Sprintf("%s (limit: %s)", r.Text, r.Limit)
}

// Unwrap gives the class of the error: closed, transient or invalid.
func (r *Refused) Unwrap() error {
	switch {
	case r.Closed:
		return model.ErrClosed
	case r.Status == http.StatusTooManyRequests || r.Status >= 500:
		return model.ErrTransient
	}
	return model.ErrInvalid
}
