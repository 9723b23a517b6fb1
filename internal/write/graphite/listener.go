package graphite

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Listener receives Graphite plaintext on one address, over TCP and UDP, and pickles and protobuf
// messages on others. Its points belong to the default tenant, except those that come over TLS: they belong
// to the tenant of the client's certificate.
type Listener struct {
	o Options
	// These accept the connections of a protocol. Each may be nil. udp is nil without plaintext.
	text, pickle, protobuf   *acceptor
	secureText, securePickle *acceptor
	udp                      *net.UDPConn
	drops                    socketDrops

	chunks       pool[chunk, *chunk]
	frameBuffers pool[frameBuffer, *frameBuffer]
	decoders     pool[decoder, *decoder]
	buffers      buffers
	labels       *labelRoom
	// lastResort holds a token while a frame exceeds the byte budget.
	lastResort chan struct{}
	metrics    *metrics
	log        *sampledLog

	// ctx ends when the drain timeout of Close has passed.
	ctx    context.Context
	cancel context.CancelFunc
	// stopBy is the time, in Unix nanoseconds, until which sockets are read after Close; zero before
	// Close.
	stopBy atomic.Int64
	work   sync.WaitGroup // connections and their pushers

	closing  sync.Once
	closeErr error

	mu     sync.Mutex // also guards the connections of the acceptors
	closed bool
	served chan struct{} // closed when Serve has returned; nil before Serve
}

// maxPooled is the largest frameBuffer, and the largest decoder, that is kept for the next pickle.
const maxPooled = 1 << 20

// New opens the sockets. If there is no address, or one cannot be used, its error is of class
// [model.ErrInvalid].
func New(o Options) (*Listener, error) {
	o.setDefaults()
	if o.Listen == "" && o.PickleListen == "" && o.ProtobufListen == "" && o.Doors.Listen == "" && o.Doors.PickleListen == "" {
		return nil, fmt.Errorf("%w: graphite: no address to listen on", model.ErrInvalid)
	}
	l := &Listener{
		o: o, labels: newLabelRoom(o.Sink), log: &sampledLog{log: o.Logger}, lastResort: make(chan struct{}, 1),
		frameBuffers: pool[frameBuffer, *frameBuffer]{most: maxPooled}, decoders: pool[decoder, *decoder]{most: maxPooled},
	}
	if o.Listen != "" {
		tcp, udp, err := openBoth(o.Listen)
		if err != nil {
			return nil, err
		}
		l.text = l.newAcceptor(tcp, nil, l.serveLines)
		l.udp, l.drops.socket = udp, udp
	}
	pickles := func(from *sender) { l.serveFrames(&l.metrics.pickle, from) }
	protobufs := func(from *sender) { l.serveFrames(&l.metrics.protobuf, from) }
	for _, f := range []struct {
		address string
		secure  *tls.Config
		to      **acceptor
		serve   func(*sender)
	}{
		{o.PickleListen, nil, &l.pickle, pickles},
		{o.ProtobufListen, nil, &l.protobuf, protobufs},
		{o.Doors.Listen, o.Doors.TLS, &l.secureText, l.serveLines},
		{o.Doors.PickleListen, o.Doors.TLS, &l.securePickle, pickles},
	} {
		if f.address == "" {
			continue
		}
		ln, err := openTCP(f.address)
		if err != nil {
			return nil, errors.Join(err, l.closeSockets())
		}
		*f.to = l.newAcceptor(ln, f.secure, f.serve)
	}
	l.metrics = newMetrics(o.Registerer, l.drops.total)
	l.buffers.free.Store(o.MaxBufferBytes)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// Addr returns the address of the TCP socket for plaintext, or nil if there is none. The UDP socket has
// the same host and port.
func (l *Listener) Addr() net.Addr { return l.text.addr() }

// PickleAddr returns the address for pickles, or nil if there is none.
func (l *Listener) PickleAddr() net.Addr { return l.pickle.addr() }

// SecureAddrs returns the addresses for plaintext and pickles over TLS. Each may be nil.
func (l *Listener) SecureAddrs() (text, pickle net.Addr) {
	return l.secureText.addr(), l.securePickle.addr()
}

// ProtobufAddr returns the address for messages of protobuf, or nil if there is none.
func (l *Listener) ProtobufAddr() net.Addr { return l.protobuf.addr() }

func (a *acceptor) addr() net.Addr {
	if a == nil {
		return nil
	}
	return a.ln.Addr()
}

// acceptors returns the acceptors that are open.
func (l *Listener) acceptors() (all []*acceptor) {
	for _, a := range []*acceptor{l.text, l.pickle, l.protobuf, l.secureText, l.securePickle} {
		if a != nil {
			all = append(all, a)
		}
	}
	return all
}

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
		if l.udp != nil {
			l.work.Go(l.serveDatagrams)
		}
		var accepting sync.WaitGroup
		for _, a := range l.acceptors() {
			accepting.Go(a.accept)
		}
		accepting.Wait()
	})
	return nil
}

// drainReads is how long Close goes on reading data that has already arrived.
const drainReads = 200 * time.Millisecond

// Close stops listening, reads what has arrived, and waits until all of it is durable. Rows that are
// not durable when the drain timeout ends are counted as dropped.
func (l *Listener) Close() error {
	l.closing.Do(func() { l.closeErr = l.close() })
	return l.closeErr
}

func (l *Listener) close() error {
	l.mu.Lock()
	l.closed = true
	by := time.Now().Add(drainReads)
	l.stopBy.Store(by.UnixNano())
	for _, a := range l.acceptors() {
		for nc := range a.conns {
			_ = nc.SetReadDeadline(by)
		}
	}
	if l.udp != nil {
		_ = l.udp.SetReadDeadline(by)
	}
	served := l.served
	l.mu.Unlock()

	var errs []error
	for _, a := range l.acceptors() {
		errs = append(errs, a.ln.Close())
	}
	timer := time.AfterFunc(l.o.DrainTimeout, l.cancel)
	defer timer.Stop()
	defer l.cancel()
	if served != nil {
		<-served
	}
	l.work.Wait()
	if l.udp != nil {
		errs = append(errs, l.drops.close())
	}
	return errors.Join(errs...)
}

// closeSockets closes what has been opened, before anything is served.
func (l *Listener) closeSockets() error {
	var errs []error
	for _, a := range l.acceptors() {
		errs = append(errs, a.ln.Close())
	}
	if l.udp != nil {
		errs = append(errs, l.udp.Close())
	}
	return errors.Join(errs...)
}
