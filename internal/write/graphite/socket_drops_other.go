//go:build !linux

package graphite

import "net"

// droppedBySocket reports that there is no counter on this system.
func droppedBySocket(*net.UDPConn) (n uint32, ok bool) { return 0, false }
