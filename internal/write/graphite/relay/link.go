package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	dialTimeout = 10 * time.Second
	// stallTimeout is how long a destination may take no bytes, or not confirm a lot. A carbon whose cache is
	// full stops reading.
	stallTimeout = time.Minute
	// writeBytes is what must be taken in that time.
	writeBytes = 64 << 10
)

// link is a connection to a destination.
type link struct {
	nc     net.Conn
	socket net.Conn      // that nc uses, without TLS
	dialed time.Duration // how long the dial took: about a round trip
	at     time.Time     // when it was made
	// ended is closed when the destination has ended its side. Why says how: io.EOF if it was closed.
	ended chan struct{}
	why   error
}

// rawConn is what TLS reads from. Between two messages, Go takes an end without the last message of TLS for a
// good one.
type rawConn struct {
	net.Conn
	ended bool // without that message; it belongs to the goroutine that reads
}

func (c *rawConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		c.ended = true
	}
	return n, err
}

var errCutOff = errors.New("the connection was cut off without the last message of TLS")

// dial connects, and reads until the destination ends its side.
func dial(ctx context.Context, address string, secure *tls.Config) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	began := time.Now()
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &link{nc: nc, socket: nc, dialed: time.Since(began), at: began, ended: make(chan struct{})}
	var raw *rawConn
	if secure != nil {
		secure = secure.Clone()
		if secure.ServerName, _, err = net.SplitHostPort(address); err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		raw = &rawConn{Conn: nc}
		s := tls.Client(raw, secure)
		if err := s.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("TLS handshake: %w", err), nc.Close())
		}
		l.nc = s
	}
	go func() {
		defer close(l.ended)
		_, err := io.Copy(io.Discard, l.nc)
		switch {
		case err != nil:
			l.why = err
		case raw != nil && raw.ended:
			l.why = errCutOff
		default:
			l.why = io.EOF
		}
	}()
	return l, nil
}

// close closes the connection. What was not sent is dropped.
func (l *link) close() {
	_ = l.nc.Close()
	<-l.ended
}

// hasEnded reports whether the destination has ended its side.
func (l *link) hasEnded() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

var errEarly = errors.New("the destination closed the connection before it had everything")

// send writes a text.
func (l *link) send(text []byte) error {
	for len(text) > 0 {
		if l.hasEnded() {
			return errEarly
		}
		n := min(len(text), writeBytes)
		if err := l.nc.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
			return err
		}
		if _, err := l.nc.Write(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// closeWrite ends the own side.
func (l *link) closeWrite() error {
	if l.hasEnded() {
		return errEarly
	}
	type writeCloser interface{ CloseWrite() error }
	return l.nc.(writeCloser).CloseWrite()
}

// awaitEnd waits until the destination has closed its side, which says that it has read everything, unless
// it died.
func (l *link) awaitEnd(ctx context.Context) error {
	timer := time.NewTimer(stallTimeout)
	defer timer.Stop()
	select {
	case <-l.ended:
		if errors.Is(l.why, io.EOF) {
			return nil
		}
		return fmt.Errorf("the destination did not confirm: %w", l.why)
	case <-timer.C:
		return fmt.Errorf("the destination did not confirm within %v: it does not read, or does not close connections", stallTimeout)
	case <-ctx.Done():
		return ctx.Err()
	}
}
