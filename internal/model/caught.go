package model

import "fmt"

// Caught makes an error of a panic of f, for goroutines of a query: what a hostile page does to one must not end the process. The text
// is that of upstream's engine.
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
