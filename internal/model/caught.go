package model

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Caught turns a panic of f into an error, for goroutines of a query: a hostile page must not end the
// process. The text is that of upstream's engine. [StackOf] returns where it was.
//
// A job in the background uses it, too, if a panic leaves nothing half done that later work depends on. It
// counts and logs the error. Where a panic could leave such state, the process ends, and begins again with
// what is durable.
func Caught(f func() error) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case again:
			err = e.panicError
		case error:
			err = &panicError{e, string(debug.Stack())}
		default:
			err = &panicError{fmt.Errorf("%v", e), string(debug.Stack())}
		}
	}()
	return f()
}

// Catching returns f with its panics as errors, for groups of goroutines.
func Catching(f func() error) func() error { return func() error { return Caught(f) } }

// PanicAgain panics if an error is one of [Caught]: a goroutine that waits for another has the panics of that
// one. Whoever catches it gets the first stack, and a process that ends prints it.
func PanicAgain(err error) {
	var e *panicError
	if errors.As(err, &e) {
		panic(again{e})
	}
}

type again struct{ *panicError }

func (a again) Error() string { return a.panicError.Error() + "\n\n" + a.stack }

type panicError struct {
	cause error
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("unexpected error: %v", e.cause) }
func (e *panicError) Unwrap() error { return e.cause }

// StackOf returns the stack of the panic that an error of [Caught] stands for, or "".
func StackOf(err error) string {
	var e *panicError
	if errors.As(err, &e) {
		return e.stack
	}
	return ""
}
