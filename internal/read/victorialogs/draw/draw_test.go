package draw

import (
	"strings"
	"testing"
)

// TestHalvings: what is left of the lines of a window is about the target, however many there are.
func TestHalvings(t *testing.T) {
	for _, lines := range []int64{0, 1, 50, 117, 118, 1000, 18e6, 1e9, 80e9} {
		n := Halvings(lines, 83)
		left := float64(lines) / float64(int64(1)<<n)
		if left > 118 || n > 0 && left < 58 {
			t.Errorf("%d lines: %.0f are left", lines, left)
		}
	}
	if Hashes>>MostHalvings < 1000 {
		t.Error("the smallest part has few hashes")
	}
}

func TestLevel(t *testing.T) {
	for _, test := range []struct {
		names string
		want  bool
	}{
		{"", true}, {"level", true}, {"level severity_text", false}, {"severity.text", true}, {"detected-level", false}, {"severity_number", false},
	} {
		l := Level{}
		for _, name := range strings.Fields(test.names + " _time _msg") {
			l.Add([]byte(name))
		}
		if got := l.IsKnown(); got != test.want {
			t.Errorf("%q: %v", test.names, got)
		}
	}
}
