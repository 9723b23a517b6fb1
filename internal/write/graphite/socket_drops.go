package graphite

import (
	"net"
	"sync"
)

// socketDrops counts the datagrams that the kernel dropped because the socket's buffer was full or a
// checksum was wrong. The kernel's counter has 32 bits, so it must be read before it wraps twice.
type socketDrops struct {
	mu     sync.Mutex
	socket *net.UDPConn // nil if there is none, or after close
	last   uint32
	sum    uint64
}

// total returns the count since the socket was opened. It still works after close.
func (s *socketDrops) total() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read()
	return float64(s.sum)
}

// read updates the count from the kernel. REQUIRES: s.mu is held.
func (s *socketDrops) read() {
	if s.socket == nil {
		return
	}
	if n, ok := droppedBySocket(s.socket); ok {
		s.sum += uint64(n - s.last)
		s.last = n
	}
}

// close closes the socket and keeps its count.
func (s *socketDrops) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read()
	socket := s.socket
	s.socket = nil
	return socket.Close()
}
