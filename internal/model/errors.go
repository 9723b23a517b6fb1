package model

import "errors"

// The four classes of errors. Every error that leaves a room wraps one of them (test with [errors.Is]); the HTTP
// status, the retry and the quarantine all follow from the class.
var (
	// ErrInvalid marks what can never succeed: bad input, a bad query, an impossible setting.
	ErrInvalid = errors.New("invalid")
	// ErrTransient marks what may succeed later: a full disk, a failing bucket, a machine under pressure.
	ErrTransient = errors.New("temporarily unavailable")
	// ErrCorrupt marks stored bytes that do not check out. The bytes are kept.
	ErrCorrupt = errors.New("corrupt")
	// ErrClosed marks use after Close, or work that a shutdown cut short.
	ErrClosed = errors.New("closed")
)

// LimitError refuses something because of a limit of the process. It is of class [ErrTransient].
type LimitError struct {
	// Limit is the setting, in the spelling of the configuration.
	Limit string
	// Text says what was met and what helps.
	Text string
}

// Error returns the text.
func (e *LimitError) Error() string { return e.Text }

// Unwrap gives the class.
func (e *LimitError) Unwrap() error { return ErrTransient }

// ErrLimit marks a query that asked for more than its quota. It is a class of its own, because the remedy is neither
// to wait nor to repair but to ask for less.
var ErrLimit = errors.New("limit exceeded")
