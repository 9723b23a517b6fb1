package model

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestCaught(t *testing.T) {
	var none []int
	err := fmt.Errorf("block b: %w", Catching(func() error { return fmt.Errorf("%d", none[len(none)]) })())
	var cause runtime.Error
	if err.Error() != "block b: unexpected error: runtime error: index out of range [0] with length 0" || !errors.As(err, &cause) {
		t.Error(err)
	}
	if stack := StackOf(err); !strings.Contains(stack, "TestCaught") {
		t.Errorf("the stack is %q", stack)
	}
	if err := Caught(func() error { panic("text") }); err == nil || err.Error() != "unexpected error: text" {
		t.Error(err)
	}
	second := Caught(func() error { PanicAgain(fmt.Errorf("unit 3: %w", err)); return nil })
	if second == nil || second.Error() != "unexpected error: runtime error: index out of range [0] with length 0" || StackOf(second) != StackOf(err) {
		t.Error(second)
	}
	func() {
		defer func() {
			if text := fmt.Sprint(recover()); !strings.Contains(text, "out of range") || !strings.Contains(text, StackOf(err)) {
				t.Errorf("a process would end with %q", text)
			}
		}()
		PanicAgain(err)
	}()
	if err := Caught(func() error { PanicAgain(ErrLimit); PanicAgain(nil); return nil }); err != nil {
		t.Error(err)
	}
	if err := Caught(func() error { return ErrLimit }); err != ErrLimit || StackOf(err) != "" {
		t.Error(err)
	}
}
