package tally

import (
	"syscall"
	"time"
)

// UsedCPU returns the user and system time of this process.
func UsedCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
