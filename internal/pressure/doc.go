// Package pressure says how much of something one user may take at a time while others want some, too.
//
// A [Share] shrinks while goroutines wait long for a processor, and grows again while they do not. So one
// user with much work cannot slow down the short work of others, and work that waits for a disk or a network
// is not throttled. Long waits are seen whatever causes them.
package pressure
