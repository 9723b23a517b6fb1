//go:build race

package racetest

import "testing"

// SkipSerial skips a test in which one goroutine does all the work: it has nothing to race with, and codecs
// take about a hundred times as long under the race detector. make check runs it.
func SkipSerial(t *testing.T) {
	t.Helper()
	t.Skip("a single goroutine, and slow under the race detector; make check runs it")
}

// Fewer divides the rounds of a test that is long under the race detector.
const Fewer = 4
