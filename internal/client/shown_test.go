package client

import (
	"strconv"
	"testing"
)

// TestShownLines: memory is bounded; what is not needed any more is forgotten first, and what is needed not
// silently.
func TestShownLines(t *testing.T) {
	s := newShown(100)
	line := func(at int) *Line {
		return &Line{At: int64(at), Stream: "{}", Text: []byte(strconv.Itoa(at))}
	}
	for i := range 1000 {
		if !s.add(line(i), int64(i-50)) || len(s.count) > 100 {
			t.Fatalf("line %d: %d are remembered", i, len(s.count))
		}
	}
	if s.forgot >= 0 {
		t.Errorf("what was needed until %d is forgotten", s.forgot)
	}
	s.expect()
	for i := 950; i < 1000; i++ {
		if s.add(line(i), 950) {
			t.Errorf("line %d is shown again", i)
		}
		if i > 990 && !s.add(line(i), 950) {
			t.Errorf("the twin of line %d is not shown", i)
		}
	}
	for i := 1000; i < 2000; i++ {
		s.add(line(i), 950)
	}
	if len(s.count) > 100 || s.forgot < 1800 || s.forgot >= 1999 {
		t.Errorf("%d are remembered, until %d they are forgotten", len(s.count), s.forgot)
	}
}
