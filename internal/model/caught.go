package model

import "fmt"

// Caught turns a panic of f into an error, for goroutines of a query: a hostile page must not end the
// process. The text is that of upstream's engine.
func Caught(f func() error) (err error) {
	defer func() {
		if e := recover(); e != nil {
			cause, ok := e.(error)
			if !ok {
				cause = fmt.Errorf("%v", e)
			}
			err = fmt.Errorf("unexpected error: %w", cause)
		}
	}()
	return f()
}
