package known

import (
	"time"

	"golang.org/x/sys/unix"
)

// steadyNow returns the nanoseconds since the machine started, also those in which it was suspended.
func steadyNow() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil { // a sandbox may refuse it, and then always does
		return int64(time.Since(started))
	}
	return ts.Nano()
}
