package app

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

// TestBoundHeap: a small heap is left alone until it has garbage of a sixteenth of the budget, which takes no memory before.
func TestBoundHeap(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	const budget = 4 << 30
	var m runtime.MemStats
	before := residentBytes(t)
	ballast := boundHeap(budget)
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.NextGC < m.HeapAlloc+budget/16 {
		t.Errorf("%d bytes are collected when they are %d", m.HeapAlloc, m.NextGC)
	}
	if grown := residentBytes(t) - before; grown > budget/16/4 {
		t.Errorf("the ballast takes %d bytes of memory", grown)
	}
	if limit, want := debug.SetMemoryLimit(-1), int64(budget-splitMemory(budget).known+budget/16); limit != want {
		t.Errorf("the limit is %d, want %d: what is not there does not count", limit, want)
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
