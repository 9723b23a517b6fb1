package known

import (
	"sync"
	"time"
)

// clock counts the time that has passed, and never too little of it: of each time between two readings it
// takes what the wall clock says or what the steady clock says, whichever is more. The wall clock may be
// set back, and the steady clock may stop while the machine does.
//
// So it is too slow only if both happen between the same two readings. On Linux the steady clock goes on
// while the machine is suspended, and stops only with a virtual machine that is stopped from outside.
type clock struct {
	// read returns both clocks in nanoseconds, each since a moment of its own.
	read func() (wall, steady int64)

	mu                   sync.Mutex // held while the clocks are read, so that the readings are in order
	wall, steady, passed int64
}

func newClock(read func() (wall, steady int64)) *clock {
	c := &clock{read: read}
	c.wall, c.steady = read()
	return c
}

// now returns the nanoseconds since newClock. It never goes back.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, steady := c.read()
	c.passed += max(wall-c.wall, steady-c.steady, 0)
	c.wall, c.steady = wall, steady
	return c.passed
}

// machineClocks returns the clocks of the machine.
func machineClocks() (wall, steady int64) { return time.Now().UnixNano(), steadyNow() }

// started is read with the monotonic clock of Go, which is never set.
var started = time.Now()
