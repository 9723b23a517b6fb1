package conns

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// MaxHeaderBytes bounds the request line and the headers of a request: a URL of 131,072 bytes, the longest
// query that LogQL allows, and 32 KiB more.
const MaxHeaderBytes = 131_072 + 32<<10

// limitedListener accepts a bounded number of connections at a time; further ones wait. Its connections are
// [net.TCPConn], unlike those of netutil, which hide CloseWrite.
type limitedListener struct {
	*net.TCPListener
	slots chan struct{}
	// makeRoom closes a connection if it can.
	makeRoom func()
	closed   chan struct{}
	close    func()
}

// limit bounds the connections of a TCP listener.
func limit(l net.Listener, most int, makeRoom func()) *limitedListener {
	closed := make(chan struct{})
	return &limitedListener{
		TCPListener: l.(*net.TCPListener), slots: make(chan struct{}, most), makeRoom: makeRoom, closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

// Accept waits for a connection and a slot.
func (l *limitedListener) Accept() (net.Conn, error) {
	conn, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	if err := l.take(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &limitedConn{TCPConn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// roomEvery is how often a connection that waits for a slot looks for one that can be closed.
const roomEvery = 100 * time.Millisecond

// take waits for a slot.
func (l *limitedListener) take() error {
	for {
		select {
		case l.slots <- struct{}{}:
			return nil
		default:
			l.makeRoom()
		}
		select {
		case l.slots <- struct{}{}:
			return nil
		case <-l.closed:
			return net.ErrClosed
		case <-time.After(roomEvery):
		}
	}
}

// Close ends Accept. Open connections stay open.
func (l *limitedListener) Close() error {
	l.close()
	return l.TCPListener.Close()
}

// limitedConn occupies a slot until it is closed.
type limitedConn struct {
	*net.TCPConn
	free func()
}

// Close closes the connection and frees its slot.
func (c *limitedConn) Close() error {
	defer c.free()
	return c.TCPConn.Close()
}

// How long, and how many bytes, the server reads and discards after it has refused a request that is still
// being sent.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 64 << 20
)

// CloseWrite ends the response and discards what the client still sends, for a short time. The server calls
// it after a response that does not wait for the rest of the request, such as 431 and 413. If it closed the
// connection with unread bytes, the kernel would reset it, and the client could lose the response.
func (c *connection) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	err := half.CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, lingerBytes))
	return err
}
