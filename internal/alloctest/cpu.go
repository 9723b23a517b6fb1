package alloctest

import (
	"syscall"
	"testing"
	"time"
)

// CPU returns the processor time that the process has used so far. Benchmarks of long work report it, because
// elapsed time means nothing on a busy machine.
func CPU(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
