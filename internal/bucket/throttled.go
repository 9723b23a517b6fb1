package bucket

import (
	"time"

	"github.com/shaledb/shale/internal/model"
)

// ThrottledError says that a store asks for fewer requests. It is of class transient.
type ThrottledError struct {
	// After is how long the store asks to wait; 0: it does not say.
	After time.Duration
	Err   error
}

// Error returns the text of the store's error.
func (e *ThrottledError) Error() string { return e.Err.Error() }

// Unwrap returns the class and the store's error.
func (e *ThrottledError) Unwrap() []error { return []error{model.ErrTransient, e.Err} }
