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
)

// acceptor accepts the TCP connections of one address.
type acceptor struct {
	l     *Listener
	ln    net.Listener
	serve func(net.Conn)
	// conns has the open connections. The mutex of l guards it.
	conns *hosts
}

// proxyTimeout bounds how long the header of a proxy may take to arrive. Proxies send it at once.
const proxyTimeout = 10 * time.Second

// newAcceptor accepts from a socket; secure is nil for one without TLS.
func (l *Listener) newAcceptor(ln net.Listener, secure *tls.Config, serve func(net.Conn)) *acceptor {
	ln = &peers{ln}
	if l.o.ProxyProtocol {
		ln = &proxyproto.Listener{Listener: ln, ReadHeaderTimeout: proxyTimeout}
	}
	if secure != nil {
		ln = tls.NewListener(ln, secure)
	}
	return &acceptor{l: l, ln: ln, serve: serve, conns: newHosts()}
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
}

func (p *peer) Read(b []byte) (int, error) {
	p.waits.Store(time.Now().UnixNano())
	defer p.waits.Store(0)
	return p.Conn.Read(b)
}

// host returns the address without the port.
func (p *peer) host() netip.Addr {
	at, _ := p.RemoteAddr().(*net.TCPAddr)
	return at.AddrPort().Addr().Unmap()
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
	l := a.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || a.conns.open >= l.o.MaxConnections && !a.displace(peerOf(nc).host()) {
		l.metrics.refused.Inc()
		l.log.failure("connection refused: too many are open", "peer", direct(nc), "limit", l.o.MaxConnections)
		nc.Close()
		return
	}
	a.conns.add(nc)
	l.metrics.accepted.Inc()
	l.metrics.connections.Inc()
	l.work.Go(func() {
		a.serve(nc)
		nc.Close()
		l.mu.Lock()
		a.conns.remove(nc)
		l.mu.Unlock()
		l.metrics.connections.Dec()
	})
}

// displace closes a connection for one of a host, and reports whether it has: one of the host with the most
// connections, if that has more than the other one will have. Of these it is the one that has been silent
// longest. One that is not being read stays: it has lines that were not taken, or its end is about to confirm
// those that were. The caller holds the mutex.
func (a *acceptor) displace(by netip.Addr) bool {
	most := a.conns.most()
	if most == nil || len(most.conns) <= a.conns.of(by)+1 {
		return false
	}
	var silent net.Conn
	least := time.Now().UnixNano()
	for nc, p := range most.conns {
		if since := p.waits.Load(); since != 0 && since < least {
			silent, least = nc, since
		}
	}
	if silent == nil {
		return false
	}
	a.l.metrics.displaced.Inc()
	a.l.log.failure("connection closed for one of another host: too many are open", "peer", direct(silent), "limit", a.l.o.MaxConnections)
	a.conns.remove(silent)
	_ = peerOf(silent).Close()
	return true
}
