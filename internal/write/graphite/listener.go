package graphite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Listener receives Graphite lines on one address, over TCP and UDP. It belongs to the tenant of those who name none.
type Listener struct {
	o       Options
	tenant  string
	tcp     net.Listener
	udp     *net.UDPConn
	chunks  chunks
	buffers buffers
	metrics *metrics
	log     *sampledLog

	// ctx ends when Close has waited long enough.
	ctx    context.Context
	cancel context.CancelFunc
	// stopBy is set by Close: the Unix nanoseconds until which sockets are still read.
	stopBy atomic.Int64
	work   sync.WaitGroup // connections and their pushers

	closing  sync.Once
	closeErr error

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	served chan struct{} // closed when Serve has returned; nil: it was not called
}

// New opens the sockets. Its error is of class [model.ErrInvalid] for an address that cannot be used.
func New(o Options) (*Listener, error) {
	o.setDefaults()
	tcp, udp, err := open(o.Listen)
	if err != nil {
		return nil, err
	}
	// What the system does not allow is cut down without an error.
	_ = udp.SetReadBuffer(udpSocketBytes)
	l := &Listener{
		o: o, tenant: model.DefaultTenant, tcp: tcp, udp: udp, metrics: newMetrics(o.Registerer),
		log: &sampledLog{log: o.Logger}, conns: map[net.Conn]struct{}{},
	}
	l.buffers.free.Store(o.MaxBufferBytes)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// open binds both sockets to one address.
func open(address string) (net.Listener, *net.UDPConn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: graphite: listen address %q: %w", model.ErrInvalid, address, err)
	}
	// A port that the system picks for TCP may be in use for UDP.
	for attempt := 1; ; attempt++ {
		tcp, err := net.Listen("tcp", address)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: graphite: %w", model.ErrInvalid, err)
		}
		at := net.JoinHostPort(host, strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port))
		udp, err := net.ListenPacket("udp", at)
		if err == nil {
			return tcp, udp.(*net.UDPConn), nil
		}
		tcp.Close()
		if port != "0" || attempt == 10 {
			return nil, nil, fmt.Errorf("%w: graphite: %w", model.ErrInvalid, err)
		}
	}
}

// Addr returns the address of the TCP socket; that of the UDP socket has the same host and port.
func (l *Listener) Addr() net.Addr { return l.tcp.Addr() }

// Serve receives until Close and then returns nil. It may be called once.
func (l *Listener) Serve() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.served = make(chan struct{})
	l.mu.Unlock()
	defer close(l.served)
	// Goroutines inherit the label.
	pprof.Do(l.ctx, pprof.Labels("room", "write/graphite"), func(context.Context) {
		l.work.Go(l.datagrams)
		l.accept()
	})
	return nil
}

// accept takes connections until the socket is closed.
func (l *Listener) accept() {
	for wait := time.Millisecond; ; {
		nc, err := l.tcp.Accept()
		switch {
		case err == nil:
			wait = time.Millisecond
			l.admit(nc)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			// Most often there are no file descriptors left, which passes.
			l.log.trouble("accepting a connection", "error", err)
			time.Sleep(wait)
			wait = min(2*wait, time.Second)
		}
	}
}

// admit starts to serve a connection, if there are not too many.
func (l *Listener) admit(nc net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.conns) >= l.o.MaxConnections {
		l.metrics.refused.Inc()
		l.log.trouble("a connection is closed at once: too many are open", "peer", nc.RemoteAddr().String(), "limit", l.o.MaxConnections)
		nc.Close()
		return
	}
	l.conns[nc] = struct{}{}
	l.metrics.accepted.Inc()
	l.metrics.connections.Inc()
	l.work.Go(func() {
		l.connection(nc)
		nc.Close()
		l.mu.Lock()
		delete(l.conns, nc)
		l.mu.Unlock()
		l.metrics.connections.Dec()
	})
}

// drainReads is for how long Close still reads what has arrived.
const drainReads = 200 * time.Millisecond

// Close stops listening, takes what has arrived, and waits until all of it is durable, at most for the drain timeout:
// what is not durable by then is counted as dropped.
func (l *Listener) Close() error {
	l.closing.Do(func() { l.closeErr = l.close() })
	return l.closeErr
}

func (l *Listener) close() error {
	l.mu.Lock()
	l.closed = true
	by := time.Now().Add(drainReads)
	l.stopBy.Store(by.UnixNano())
	for nc := range l.conns {
		_ = nc.SetReadDeadline(by)
	}
	_ = l.udp.SetReadDeadline(by)
	served := l.served
	l.mu.Unlock()

	err := l.tcp.Close()
	timer := time.AfterFunc(l.o.DrainTimeout, l.cancel)
	defer timer.Stop()
	defer l.cancel()
	if served != nil {
		<-served
	}
	l.work.Wait()
	return errors.Join(err, l.udp.Close())
}
