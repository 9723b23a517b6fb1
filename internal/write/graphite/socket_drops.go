package graphite

import (
	"net"
	"sync"
)

// socketDrops counts the datagrams that the system dropped, since the socket's buffer was full or a checksum wrong. The
// system counts in 32 bits; asking it now and then is enough.
type socketDrops struct {
	mu     sync.Mutex
	socket *net.UDPConn // nil: none, or closed
	last   uint32
	sum    uint64
}

// total returns the count since the socket was opened, also after it was closed.
func (s *socketDrops) total() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read()
	return float64(s.sum)
}

// read asks the system. REQUIRES: s.mu is held.
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
