package graphite

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// droppedBySocket reads the drop counter of a socket. The kernel can also attach the counter to each
// datagram as ancillary data, but then drops after the last datagram stay unknown.
func droppedBySocket(socket *net.UDPConn) (n uint32, ok bool) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	// The kernel fills in as many counters as it has and as fit.
	var info [unix.SK_MEMINFO_DROPS + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	err = raw.Control(func(fd uintptr) {
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		ok = errno == 0 && size == uint32(unsafe.Sizeof(info))
	})
	return info[unix.SK_MEMINFO_DROPS], ok && err == nil
}
