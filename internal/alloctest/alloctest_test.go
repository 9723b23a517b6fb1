package alloctest

import "testing"

var sink []byte

func TestAtMost(t *testing.T) {
	AtMost(t, 0, 100, func() {})
	AtMost(t, 1, 100, func() { sink = make([]byte, 64) })
}

func TestLive(t *testing.T) {
	Counts(t)
	got := Live(func() any {
		sink = make([]byte, 8<<20) // becomes garbage
		sink = nil
		return make([]byte, 1<<20)
	})
	if got < 1<<20-64<<10 || got > 1<<20+64<<10 {
		t.Errorf("%d bytes are alive, want a MiB", got)
	}
}
