package memcache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/memcache/meta"
	"github.com/shaledb/shale/internal/memcache/pipe"
)

const (
	// dialTimeout bounds the time until a new connection can be used, with TLS and the questions about the
	// server.
	dialTimeout = 2 * time.Second
	// redialPause is how long a server that could not be dialled is left alone.
	redialPause = 200 * time.Millisecond
)

// line is a place for one connection to a server, which is dialled when a request needs it.
type line struct {
	n *node

	mu     sync.Mutex
	conn   *pipe.Conn
	dialed chan struct{} // open while a goroutine dials; nil: none does
	err    error         // of the last dial
	next   time.Time     // when to dial again
	closed bool
}

// get returns the connection. It dials if there is none, and waits until the deadline for that.
func (l *line) get(ctx context.Context, deadline time.Time) (*pipe.Conn, error) {
	conn, dialed, err := l.now()
	if conn != nil || err != nil {
		return conn, err
	}
	wait := time.NewTimer(time.Until(deadline))
	defer wait.Stop()
	for conn == nil && err == nil {
		select {
		case <-dialed:
		case <-wait.C:
			return nil, pipe.ErrTimeout
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		conn, dialed, err = l.now()
	}
	return conn, err
}

// now returns the connection, or why there is none, or what is closed when a dial has ended. By then, the new
// connection may be broken already, and another goroutine may dial again.
func (l *line) now() (conn *pipe.Conn, dialed chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dialed != nil:
		return nil, l.dialed, nil
	case l.conn != nil && l.conn.Err() == nil:
		return l.conn, nil, nil
	}
	err = l.redial()
	return nil, l.dialed, err
}

// redial begins to dial, unless the last attempt was a moment ago. The caller holds the lock.
func (l *line) redial() error {
	switch {
	case l.closed:
		return pipe.ErrClosed
	case time.Now().Before(l.next):
		return l.err
	}
	old := l.conn
	l.conn, l.dialed = nil, make(chan struct{})
	l.n.done.Go(func() {
		if old != nil {
			old.Close()
		}
		conn, err := l.n.dial()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.err = err; err != nil {
			l.next = time.Now().Add(redialPause)
		} else if l.closed {
			conn.Close()
		} else {
			l.conn = conn
		}
		close(l.dialed)
		l.dialed = nil
	})
	return nil
}

func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.conn != nil {
		l.conn.Close()
	}
}

// dial opens a connection and asks the server about itself.
func (n *node) dial() (*pipe.Conn, error) {
	ctx, cancel := context.WithTimeout(n.c.ctx, dialTimeout)
	defer cancel()
	n.m.dials.Inc()
	conn, err := n.c.o.Dialer.DialContext(ctx, "tcp", n.addr)
	if err == nil && n.c.o.TLS != nil {
		conn, err = n.handshake(ctx, conn)
	}
	if err == nil {
		if err = n.learn(conn); err != nil {
			_ = conn.Close() // what is wrong with it is in err
		}
	}
	if err != nil {
		n.m.failedDials.Inc()
		return nil, fmt.Errorf("memcached %s: %w", n.addr, err)
	}
	return pipe.New(conn, pipe.Options{MaxValue: n.c.o.MaxValue, Stall: n.c.o.Stall, Observe: n.observe, Stray: n.m.strays.Inc}), nil
}

func (n *node) handshake(ctx context.Context, conn net.Conn) (net.Conn, error) {
	config := n.c.o.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(n.name) // servers are checked to have a port
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// learn asks a server for its version and settings.
func (n *node) learn(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("version\r\nstats settings\r\n")); err != nil {
		return err
	}
	r := meta.NewReader(conn, 0)
	for {
		var resp meta.Response
		if err := r.Read(&resp); err != nil {
			return err
		}
		switch resp.Code {
		case meta.Version:
			version := string(resp.Text)
			if !speaksMeta(version) {
				return fmt.Errorf("expected memcached 1.6 or later, got %.20s", version)
			}
			n.version.Store(&version)
		case meta.Stat:
			name, value, _ := strings.Cut(string(resp.Text), " ")
			if size, err := strconv.ParseInt(value, 10, 64); name == "item_size_max" && err == nil && size > 0 {
				n.itemMax.Store(size)
			}
		case meta.End:
			return conn.SetDeadline(time.Time{})
		default:
			return fmt.Errorf("expected settings, got %v %.100s", resp.Code, resp.Text)
		}
	}
}

// speaksMeta reports whether a version has the meta commands as they are now: 1.5 had others.
func speaksMeta(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return true // a server of another kind, which may have them
	}
	return major > 1 || major == 1 && minor >= 6
}

// blames reports whether an error says that the server or the way to it is at fault.
func blames(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, pipe.ErrBusy)
}
