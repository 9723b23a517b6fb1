package write

import (
	"fmt"
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Refused is the error for a request that was refused, in whole or in part. It tells the sender which
// limit was hit, what to do, and whether to retry.
type Refused struct {
	// Status is the HTTP status. Senders retry on 5xx and mostly drop the data on 4xx.
	Status int
	// Limit is the setting or resource that was exhausted, as spelled in the configuration.
	Limit string
	// Text says what happened and what to do about it.
	Text string
	// RetryAfter is how long to wait before a retry; zero if a retry can never succeed.
	RetryAfter time.Duration
	// Closed means that this process is shutting down. Another one, or this one after a restart, may
	// accept the request.
	Closed bool
	// NewSeries says that only rows of new series are refused, for as long as the tenant has no room for
	// them. A receiver that would hold back other rows meanwhile drops these.
	NewSeries bool
}

// Error returns the text with the name of the limit.
func (r *Refused) Error() string {
	if r.Limit == "" {
		return r.Text
	}
	return fmt.Sprintf("%s (limit: %s)", r.Text, r.Limit)
}

// Unwrap returns the class of the error: closed, transient or invalid.
func (r *Refused) Unwrap() error {
	switch {
	case r.Closed:
		return model.ErrClosed
	case r.Status == http.StatusTooManyRequests || r.Status >= 500:
		return model.ErrTransient
	}
	return model.ErrInvalid
}
