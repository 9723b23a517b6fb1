package main

import (
	"encoding/json"
	"testing"
)

// TestFarTimesAreNotDrawn: an axis over all of time has too many ticks to count.
func TestFarTimesAreNotDrawn(t *testing.T) {
	for text, ok := range map[string]bool{
		`[0,"1"]`: true, `[253402300799,"1"]`: true, `[253402300800,"1"]`: false, `[-1e300,"1"]`: false, `[6133383376173,"2"]`: false,
	} {
		var p point
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		if _, err := p.number(); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
