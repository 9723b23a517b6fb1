package alloctest

import "testing"

var sink []byte

func TestAtMost(t *testing.T) {
	AtMost(t, 0, 100, func() {})
	AtMost(t, 1, 100, func() { sink = make([]byte, 64) })
}
