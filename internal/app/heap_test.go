package app

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
)

// TestBoundHeap: a small heap is not collected before its garbage has a sixteenth of the budget, at most 64
// MiB. The ballast takes no memory.
func TestBoundHeap(t *testing.T) {
	alloctest.Counts(t) // the race detector uses memory for every allocation
	// Each case has its own process, as a server has.
	const own = "SHALE_TEST_BOUND_HEAP"
	for i, c := range []struct{ budget, ballast int64 }{{512 << 20, 32 << 20}, {1 << 30, 64 << 20}, {64 << 30, 64 << 20}} {
		switch os.Getenv(own) {
		case "":
			cmd := exec.Command(os.Args[0], "-test.run=^TestBoundHeap$")
			cmd.Env = append(os.Environ(), fmt.Sprint(own, "=", i))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("a budget of %d: %v\n%s", c.budget, err, out)
			}
		case fmt.Sprint(i):
			boundsHeap(t, c.budget, c.ballast)
		}
	}
}

func boundsHeap(t *testing.T, budget, want int64) {
	t.Helper()
	var m runtime.MemStats
	runtime.GC() // the freed memory must not be cleared for the ballast
	before := residentBytes(t)
	ballast := boundHeap(budget, splitMemory(budget).known)
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.NextGC < m.HeapAlloc+uint64(want) || int64(ballast.Cap()) != want {
		t.Errorf("%d bytes are collected when they are %d", m.HeapAlloc, m.NextGC)
	}
	if grown := residentBytes(t) - before; grown > want/4 {
		t.Errorf("the ballast takes %d bytes of memory", grown)
	}
	if limit, right := debug.SetMemoryLimit(-1), budget-splitMemory(budget).known+want; limit != right {
		t.Errorf("the limit is %d, want %d: what is not there does not count", limit, right)
	}
	runtime.KeepAlive(ballast)
}

// residentBytes is the memory of this process.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("only Linux says how much memory a process has:", err)
	}
	var all, resident int64
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}
