package alloctest

import (
	"runtime"
	"testing"
)

// Counts skips the test where allocations cannot be counted: under the race detector, pools drop what they
// are given. make check runs the test without it.
func Counts(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
}

// AtMost fails the test if f makes more than max allocations per run, on average over the runs.
//
// The count is that of the whole process and includes timers or a garbage collector that wake up meanwhile,
// so one good measurement out of a few passes. Like Counts, it skips the test under the race detector.
func AtMost(t *testing.T, max float64, runs int, f func()) {
	t.Helper()
	Counts(t)
	var got float64
	for range 5 {
		if got = testing.AllocsPerRun(runs, f); got <= max {
			return
		}
	}
	t.Errorf("%v allocations a run, and the budget is %v", got, max)
}

// Bytes returns how many bytes the process allocates while f runs.
func Bytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Live returns how many bytes are alive because of what f returns. It collects garbage.
func Live(f func() any) int64 {
	before := live()
	kept := f()
	after := live()
	runtime.KeepAlive(kept)
	return after - before
}

func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // also what pools keep
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
