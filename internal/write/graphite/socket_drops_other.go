//go:build !linux

package graphite

import "net"

// droppedBySocket has no counter to read.
func droppedBySocket(*net.UDPConn) (n uint32, ok bool) { return 0, false }
