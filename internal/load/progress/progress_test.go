package progress

import (
	"bytes"
	"testing"
	"time"
)

// TestBarEnds: a bar ends with what it shows, whether that gets to its total, beyond it, or nowhere near.
func TestBarEnds(t *testing.T) {
	for _, n := range []int64{0, 3, 10, 12} {
		for _, total := range []int64{0, 10} {
			var out bytes.Buffer
			done := make(chan struct{})
			go func() {
				defer close(done)
				Progress{Out: &out, Terminal: true}.During(Meter{Name: "x", Total: total, Read: func() int64 { return n }, Detail: func() string { return "" }}, func() {
					time.Sleep(2 * barInterval)
				})
			}()
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				t.Fatalf("a bar of %d does not end at %d", total, n)
			}
		}
	}
}
