package api

import (
	"net/http"
	"strings"
)

// StatusClientClosed is nginx's status for a client that closed the connection before it had the response.
const StatusClientClosed = 499

// Error is an error with its place in HTTP.
type Error struct {
	// Kind is the dialect's word for the error, if it has one.
	Kind   string
	Status int
	Err    error
	// Final leaves Retry-After out of a response that would have it by its status.
	Final bool
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// retryable reports whether the response asks the client to try again.
func (e *Error) retryable() bool {
	return !e.Final && (e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable)
}

// FormError is an error in the encoding of a form.
type FormError struct{ Err error }

func (e *FormError) Error() string { return e.Err.Error() }
func (e *FormError) Unwrap() error { return e.Err }

// TurnError refuses a request whose turn did not come in time. It is of class [model.ErrTransient].
type TurnError struct{ Err error }

func (e *TurnError) Error() string { return e.Err.Error() }
func (e *TurnError) Unwrap() error { return e.Err }

// MaxErrorBytes bounds the text of an error: parsers quote all of the input that they cannot read.
const MaxErrorBytes = 8 << 10

// Shorten cuts the text of an error to MaxErrorBytes.
func Shorten(text string) string {
	if len(text) <= MaxErrorBytes {
		return text
	}
	return strings.ToValidUTF8(text[:MaxErrorBytes], "") + " ..."
}
