package graphite

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// droppedBySocket reads the drop counter of a socket. That it comes with each datagram, as ancillary data, was no
// choice: then nothing is known of the drops behind the last datagram.
func droppedBySocket(socket *net.UDPConn) (n uint32, ok bool) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	// The system fills as many of its counters as it has and there is room for.
	var info [unix.SK_MEMINFO_DROPS + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	err = raw.Control(func(fd uintptr) {
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		ok = errno == 0 && size == uint32(unsafe.Sizeof(info))
	})
	return info[unix.SK_MEMINFO_DROPS], ok && err == nil
}
