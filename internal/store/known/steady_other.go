//go:build !linux

package known

import "time"

// steadyNow returns the nanoseconds since the process started. It may leave out those in which the machine
// was suspended.
func steadyNow() int64 { return int64(time.Since(started)) }
