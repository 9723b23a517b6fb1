//go:build race

package part

import "testing"

// alone skips a test in which one goroutine does all the work, so that it has nothing to race with, and which
// is long under the race detector: codecs take some hundred times as long. make check runs it.
func alone(t *testing.T) {
	t.Helper()
	t.Skip("one goroutine, and long under the race detector; make check runs it")
}
