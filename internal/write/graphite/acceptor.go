package graphite

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/peerhost"
)

// acceptor accepts the TCP connections of one address.
type acceptor struct {
	l     *Listener
	ln    net.Listener
	serve func(*sender)

	// The mutex of l guards the following.
	// conns has the open connections, also those that gave way and are still ending.
	conns map[net.Conn]*peer
	// known are the connections of clients that are known, and strangers those that have yet to identify
	// themselves by TLS. Those that gave way are in neither.
	known, strangers *hosts
}

// proxyTimeout bounds how long the header of a proxy may take to arrive. Proxies send it at once.
const proxyTimeout = 10 * time.Second

// newAcceptor accepts from a socket; secure is nil for one without TLS.
func (l *Listener) newAcceptor(ln net.Listener, secure *tls.Config, serve func(*sender)) *acceptor {
	ln = &peers{ln}
	if l.o.ProxyProtocol {
		ln = &proxyproto.Listener{Listener: ln, ReadHeaderTimeout: proxyTimeout}
	}
	if secure != nil {
		ln = tls.NewListener(ln, secure)
	}
	return &acceptor{l: l, ln: ln, serve: serve, conns: map[net.Conn]*peer{}, known: newHosts(), strangers: newHosts()}
}

// peers accepts connections that note since when they are read.
type peers struct{ net.Listener }

func (l *peers) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &peer{Conn: nc}, nil
}

// peer is the other end of a connection, which may be a proxy. Its address is there at once, and that of a
// client of the proxy only after a header.
type peer struct {
	net.Conn
	// waits is since when the server waits for something to come, as Unix nanoseconds; 0: it does not.
	waits atomic.Int64
	// begun is since when a part of a line, of a frame or of a handshake has come, as Unix nanoseconds; 0: none
	// has, since the last one ended.
	begun atomic.Int64
	// queue has the rows that are not durable; nil before there can be any.
	queue atomic.Pointer[queue]
	// in is where the connection is counted, and nil after it gave way; from is where it was counted before
	// that. The mutex of the listener guards them.
	in, from *hosts
	// gaveWay means that it gave way to another one: nothing more is read.
	gaveWay atomic.Bool
}

// host returns the other end.
func (p *peer) host() netip.Addr { return peerhost.Of(p.RemoteAddr()) }

func (p *peer) Read(b []byte) (int, error) {
	p.waits.Store(time.Now().UnixNano())
	defer p.waits.Store(0)
	n, err := p.Conn.Read(b)
	if n > 0 && p.begun.Load() == 0 {
		p.begun.Store(time.Now().UnixNano())
	}
	return n, err
}

// ended says that a line, a frame or the handshake has ended, and whether a part of the next one has come.
func (p *peer) ended(begun bool) {
	since := int64(0)
	if begun {
		since = time.Now().UnixNano()
	}
	p.begun.Store(since)
}

// SetReadDeadline sets the deadline of reading, unless reading has ended.
func (p *peer) SetReadDeadline(t time.Time) error {
	err := p.Conn.SetReadDeadline(t)
	// giveWay stores gaveWay before it sets its own deadline, so whichever of the two runs last sets the
	// right one.
	if p.gaveWay.Load() {
		err = p.Conn.SetReadDeadline(longAgo)
	}
	return err
}

// SetDeadline sets both deadlines.
func (p *peer) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

var longAgo = time.Unix(1, 0)

// giveWay ends the reading of the connection, which then takes its usual end: its rows become durable, and
// then it is closed.
func (p *peer) giveWay() {
	p.gaveWay.Store(true)
	_ = p.Conn.SetReadDeadline(longAgo)
}

// durable reports whether all rows of the connection are.
func (p *peer) durable() bool {
	q := p.queue.Load()
	return q == nil || q.empty()
}

// peerOf returns the peer below TLS and the protocol of a proxy.
func peerOf(nc net.Conn) *peer {
	if s, ok := nc.(*tls.Conn); ok {
		nc = s.NetConn()
	}
	if p, ok := nc.(*proxyproto.Conn); ok {
		nc = p.Raw()
	}
	return nc.(*peer)
}

// direct returns the address of the other end of a connection. Unlike RemoteAddr it does not wait for a
// header.
func direct(nc net.Conn) string { return peerOf(nc).RemoteAddr().String() }

// openBoth binds a TCP and a UDP socket to the same address and port.
func openBoth(address string) (net.Listener, *net.UDPConn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: graphite: listen address %q: %w", model.ErrInvalid, address, err)
	}
	// If the system picks the port, the port that is free for TCP may be in use for UDP.
	for attempt := 1; ; attempt++ {
		tcp, err := openTCP(address)
		if err != nil {
			return nil, nil, err
		}
		at := net.JoinHostPort(host, strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port))
		udp, err := net.ListenPacket("udp", at)
		if err == nil {
			// The system silently lowers a size that it does not allow.
			_ = udp.(*net.UDPConn).SetReadBuffer(udpSocketBytes)
			return tcp, udp.(*net.UDPConn), nil
		}
		tcp.Close()
		if port != "0" || attempt == 10 {
			return nil, nil, fmt.Errorf("%w: graphite: %w", model.ErrInvalid, err)
		}
	}
}

func openTCP(address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: graphite: %w", model.ErrInvalid, err)
	}
	return ln, nil
}

// accept accepts connections until the socket is closed.
func (a *acceptor) accept() {
	for wait := time.Millisecond; ; {
		nc, err := a.ln.Accept()
		switch {
		case err == nil:
			wait = time.Millisecond
			a.admit(nc)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			// The usual cause is a lack of file descriptors, which passes.
			a.l.log.failure("cannot accept a connection", "error", err)
			time.Sleep(wait)
			wait = min(2*wait, time.Second)
		}
	}
}

// admit serves a connection, or closes it if too many are open.
func (a *acceptor) admit(nc net.Conn) {
	l, p := a.l, peerOf(nc)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !a.enter(nc, p) {
		a.refuse(p)
		nc.Close()
		return
	}
	a.conns[nc] = p
	l.metrics.accepted.Inc()
	l.metrics.connections.Inc()
	l.work.Go(func() {
		if from := l.identify(nc); from != nil && a.know(p) {
			a.serve(from)
		}
		nc.Close()
		a.leave(nc, p)
		l.metrics.connections.Dec()
	})
}

// spare bounds the connections beyond the limit: those that are ending after they gave way, and, with TLS,
// those of clients that are not known yet.
func (a *acceptor) spare() int { return 4 + a.l.o.MaxConnections/16 }

// enter counts a new connection, and reports whether there is room for it. With TLS its client is not known
// yet, so only another one that is not known either gives way to it. The caller holds the mutex.
func (a *acceptor) enter(nc net.Conn, p *peer) bool {
	to, room := a.known, a.known.open < a.l.o.MaxConnections
	if _, secure := nc.(*tls.Conn); secure {
		to, room = a.strangers, a.known.open+a.strangers.open < a.l.o.MaxConnections+a.spare()
	}
	if !room && !a.displace(to, p.host()) {
		return false
	}
	to.add(p)
	return true
}

// know counts a connection among those of known clients, and reports whether there is room for it.
func (a *acceptor) know(p *peer) bool {
	a.l.mu.Lock()
	defer a.l.mu.Unlock()
	switch p.in {
	case a.known: // without TLS
		return true
	case nil: // it gave way during the handshake
		return false
	}
	if a.known.open >= a.l.o.MaxConnections && !a.displace(a.known, p.host()) {
		a.refuse(p)
		return false
	}
	a.strangers.remove(p)
	a.known.add(p)
	return true
}

// leave ends the count of a connection.
func (a *acceptor) leave(nc net.Conn, p *peer) {
	a.l.mu.Lock()
	defer a.l.mu.Unlock()
	delete(a.conns, nc)
	if p.in != nil {
		p.in.remove(p)
	} else {
		p.from.ending--
	}
}

// refuse counts and logs a connection that must be closed.
func (a *acceptor) refuse(p *peer) {
	a.l.metrics.refused.Inc()
	a.l.log.failure("connection refused: too many are open", "peer", p.RemoteAddr().String(), "limit", a.l.o.MaxConnections)
}

// displace ends a connection of some for one of a host, and reports whether it has. Until its rows are
// durable it keeps a part of the spare room. The caller holds the mutex.
func (a *acceptor) displace(from *hosts, by netip.Addr) bool {
	if from.ending >= a.spare() {
		return false
	}
	p := from.choose(by)
	if p == nil {
		return false
	}
	a.l.metrics.displaced.Inc()
	a.l.log.failure("connection closed for one of another host: too many are open", "peer", p.RemoteAddr().String(), "limit", a.l.o.MaxConnections)
	from.remove(p)
	p.from = from
	from.ending++
	p.giveWay()
	return true
}
