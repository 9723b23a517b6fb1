//go:build race

package racetest

import "testing"

// SkipSerial skips a test in which one goroutine does all the work: it has nothing to race with, and codecs
// take about a hundred times as long under the race detector. make check runs it.
func SkipSerial(t *testing.T) {
	t.Helper()
	t.Skip("a single goroutine, and slow under the race detector; make check runs it")
}

// Only returns the named cases: the others do the same work on other data, so there is nothing more to race
// with. make check runs them.
func Only[C any](cases map[string]C, names ...string) map[string]C {
	some := make(map[string]C)
	for _, name := range names {
		c, ok := cases[name]
		if !ok {
			panic("there is no case " + name)
		}
		some[name] = c
	}
	return some
}

// Fewer divides the rounds of a test that is long under the race detector.
const Fewer = 4
