package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/memcache/items"
)

// Version is what the server says of itself: the memcached whose commands it has.
const Version = "1.6.18-shale"

// Options build a Server.
type Options struct {
	// Memory bounds items, with all that is needed to find them, and the large buffers of connections.
	Memory int64
	// MaxItem is the largest item, in the bytes that it would take in memcached.
	MaxItem int
	// MaxConns bounds the connections. One that is idle for IdleTimeout is closed, unless that is 0.
	MaxConns    int
	IdleTimeout time.Duration
	// Disk keeps what is worth it; nil: nothing is kept. The server closes it.
	Disk *ssd.Store
	// DiskMemory is what the disk takes of the memory.
	DiskMemory int64
	// SameRead is the time in which reads count as one.
	SameRead time.Duration
	Now      func() time.Time // nil: time.Now
	Logger   *slog.Logger     // nil: no log
}

// counters are what connections count that no item is concerned with.
type counters struct {
	conns, total, refused, idle, binary atomic.Int64
	read, written                       atomic.Int64
	tooLarge, noMemory, flushes         atomic.Int64
}

// Server serves memcached clients.
type Server struct {
	o       Options
	items   *items.Store
	disk    *ssd.Store
	buffers buffers
	count   counters
	cas     atomic.Uint64
	begun   time.Time

	writeTimeout time.Duration

	flushing sync.Mutex
	flushAt  atomic.Uint32 // a flush that is to come; 0: none

	done sync.WaitGroup
	stop chan struct{}

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	conns     map[*conn]bool
}

// smallestItem is the least that MaxItem may be, as in memcached.
const smallestItem = 1024

// bufferShare is the share of the memory for large buffers, which are enough for eight of the largest items.
const bufferShare = 16

// New returns a server without listeners.
func New(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxItem < smallestItem || o.MaxItem > 1<<30 {
		return nil, fmt.Errorf("item size limit: expected %d to %d bytes, got %d", smallestItem, 1<<30, o.MaxItem)
	}
	buffered := max(o.Memory/bufferShare, 8*(int64(o.MaxItem)+smallBuffer))
	s := &Server{o: o, disk: o.Disk, begun: o.Now(), writeTimeout: writeTimeout, stop: make(chan struct{}), conns: make(map[*conn]bool)}
	var err error
	if s.items, err = items.New(o.Memory-o.DiskMemory-buffered, o.MaxItem); err != nil {
		return nil, fmt.Errorf("memory of %d bytes, of which %d are for buffers and %d for the disk: %w", o.Memory, buffered, o.DiskMemory, err)
	}
	s.buffers.begin(buffered)
	// Numbers go on after a restart, so that a client that waited for it cannot take a new value for the one
	// that it has read: they leave room for 4 million changes a second, and for JavaScript, which has 53 bits.
	s.cas.Store(uint64(s.begun.Unix())<<22 + uint64(s.begun.Nanosecond())<<22/1e9)
	if s.disk != nil {
		s.flushAt.Store(s.disk.ClearsAt())
	}
	s.done.Go(s.watch)
	return s, nil
}

// reader tells reads at one time from reads at another.
func (s *Server) reader(now int64) uint16 {
	return uint16(now / max(int64(s.o.SameRead/time.Second), 1))
}

// watch does what is due each second.
func (s *Server) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			now := uint32(s.o.Now().Unix())
			if at := s.flushAt.Load(); at != 0 && at <= now {
				if err := s.flushItems(0, now); err != nil {
					s.o.Logger.Error("a flush that was asked for earlier failed, and is tried again", "err", err)
				}
			}
		}
	}
}

// flushItems removes all items, now or at a time that is to come. A later call replaces what is to come.
func (s *Server) flushItems(at, now uint32) error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	if at > now {
		if s.disk != nil {
			if err := s.disk.ClearAt(at); err != nil {
				return err
			}
		}
		s.flushAt.Store(at)
		return nil
	}
	s.items.Flush(s.cas.Add(1))
	if s.disk != nil {
		if err := s.disk.Clear(); err != nil {
			return err
		}
	}
	s.flushAt.Store(0)
	return nil
}

// Serve takes connections of a listener until the server is closed.
func (s *Server) Serve(l net.Listener) {
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	closed := s.closed
	s.mu.Unlock()
	if closed {
		_ = l.Close() // nothing is lost with it
		return
	}
	s.done.Go(func() {
		for {
			nc, err := l.Accept()
			if err == nil {
				s.accept(nc)
				continue
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of file descriptors, most likely: clients that leave make room.
			s.o.Logger.Warn("a connection could not be taken", "err", err)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-s.stop:
				return
			}
		}
	})
}

// accept serves a connection, or refuses it as memcached does.
func (s *Server) accept(nc net.Conn) {
	s.count.total.Add(1)
	c := &conn{s: s, nc: nc, addr: nc.RemoteAddr().String(), id: s.count.total.Load()}
	c.last.Store(s.o.Now().Unix())
	s.mu.Lock()
	full := len(s.conns) >= s.o.MaxConns
	if full || s.closed {
		s.mu.Unlock()
		if full {
			s.count.refused.Add(1)
			_ = nc.SetWriteDeadline(time.Now().Add(time.Second))           // an error shows at the write
			_, _ = nc.Write([]byte("ERROR Too many open connections\r\n")) // the client may be gone
		}
		_ = nc.Close()
		return
	}
	s.conns[c] = true
	s.count.conns.Store(int64(len(s.conns)))
	s.mu.Unlock()
	s.done.Go(func() {
		if err := c.serve(); !lost(err) {
			s.o.Logger.Warn("a connection was closed", "client", c.addr, "err", err)
		}
		_ = nc.Close() // it has been served
		s.mu.Lock()
		delete(s.conns, c)
		s.count.conns.Store(int64(len(s.conns)))
		s.mu.Unlock()
	})
}

// StopServing closes listeners and connections, and waits for the requests that are being served.
func (s *Server) StopServing() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	for _, l := range s.listeners {
		_ = l.Close() // nothing is lost with it
	}
	for c := range s.conns {
		_ = c.nc.Close() // a client sees that its request has no response
	}
	s.mu.Unlock()
	close(s.stop)
	s.done.Wait()
}

// Close ends the server. What memory has goes to the disk, as far as there is room and time.
func (s *Server) Close() error {
	s.StopServing()
	if s.disk == nil {
		return nil
	}
	s.keep()
	return s.disk.Close()
}
