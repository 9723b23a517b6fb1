package model

import "errors"

// The four classes of errors. Every error that leaves a room wraps one of them (test with [errors.Is]); the
// HTTP status, the retry and the quarantine all follow from the class.
var (
	// ErrInvalid marks requests that can never succeed: bad input, a bad query, an impossible setting.
	ErrInvalid = errors.New("invalid")
	// ErrTransient marks failures that may pass: a full disk, a failing bucket, a machine under pressure.
	ErrTransient = errors.New("temporarily unavailable")
	// ErrCorrupt marks stored bytes that fail a check. The bytes are kept.
	ErrCorrupt = errors.New("corrupt")
	// ErrClosed marks use after Close, or work that a shutdown cut short.
	ErrClosed = errors.New("closed")
)

// LimitError refuses something because of a limit of the process or of a tenant. It is of class
// [ErrTransient].
type LimitError struct {
	// Limit is the setting, in the spelling of the configuration.
	Limit string
	// Text states the limit that was reached and the remedy.
	Text string
	// Tenant says that the limit is that of one tenant, and not of the process.
	Tenant bool
}

// Error returns the text.
func (e *LimitError) Error() string { return e.Text }

// Unwrap returns the class.
func (e *LimitError) Unwrap() error { return ErrTransient }

// ErrLimit marks a query that exceeds its quota. It is a class of its own, because neither waiting nor repair
// helps: the client must ask for less.
var ErrLimit = errors.New("limit exceeded")
