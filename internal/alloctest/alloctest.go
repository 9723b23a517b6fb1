package alloctest

import "testing"

// AtMost fails the test if f makes more than max allocations a run, on average over the runs.
//
// The count is that of the whole process, so that a timer or a collector that wakes up meanwhile is counted too: one
// good measurement out of a few is proof enough. Under the race detector there is none, since it lets pools drop what
// they are given; make check runs without it.
func AtMost(t *testing.T, max float64, runs int, f func()) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	var got float64
	for range 5 {
		if got = testing.AllocsPerRun(runs, f); got <= max {
			return
		}
	}
	t.Errorf("%v allocations a run, and the budget is %v", got, max)
}
