package alloctest

import (
	"syscall"
	"testing"
	"time"
)

// CPU is the processor time that the process has used so far, which benchmarks of long work report: beside other work the clock
// says nothing.
func CPU(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
