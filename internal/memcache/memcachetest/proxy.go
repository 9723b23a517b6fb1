package memcachetest

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Faults say what a proxy does to the responses of its server. The zero value passes them on.
type Faults struct {
	// Delay is added to each piece of a response.
	Delay time.Duration
	// Flip is the share of bytes of which one bit is flipped.
	Flip float64
	// Refuse closes each connection at once, and Stall passes nothing on in either direction.
	Refuse, Stall bool
	// Cut ends each connection after so many bytes of responses; 0: never.
	Cut int
	// Echo sends each piece of a response twice.
	Echo bool
}

// Proxy passes connections to a server. It ends with its test.
type Proxy struct {
	// Addr is HOST:PORT.
	Addr string
	// Connections is the number of connections that were taken.
	Connections atomic.Int64

	to     atomic.Pointer[string]
	l      net.Listener
	faults atomic.Pointer[Faults]
	done   sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	ended bool
}

// NewProxy starts a proxy to an address.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), l: l, conns: make(map[net.Conn]bool)}
	p.faults.Store(&Faults{})
	p.to.Store(&to)
	p.done.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Inject replaces the faults. They apply to what is passed on from now on.
func (p *Proxy) Inject(f Faults) { p.faults.Store(&f) }

// Redirect ends all connections, and passes new ones to another address.
func (p *Proxy) Redirect(to string) {
	p.to.Store(&to)
	p.Drop()
}

// Drop ends all connections.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *Proxy) close() {
	_ = p.l.Close()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.Drop()
	p.done.Wait()
}

// keep notes a connection, so that Drop ends it.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.Connections.Add(1)
		if p.faults.Load().Refuse {
			_ = client.Close()
			continue
		}
		server, err := net.Dial("tcp", *p.to.Load())
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client) || !p.keep(server) {
			return
		}
		p.done.Go(func() { p.pass(server, client, func(*Faults, []byte) []byte { return nil }) })
		r, sent := rand.New(rand.NewPCG(1, uint64(p.Connections.Load()))), 0
		p.done.Go(func() {
			p.pass(client, server, func(f *Faults, b []byte) []byte {
				time.Sleep(f.Delay)
				for i := range b {
					if f.Flip > 0 && r.Float64() < f.Flip {
						b[i] ^= 1 << r.IntN(8)
					}
				}
				if sent += len(b); f.Cut > 0 && sent > f.Cut {
					_ = client.Close()
				}
				if f.Echo {
					return b
				}
				return nil
			})
		})
	}
}

// pass copies from one connection to another. change may change a piece, and return one that is sent after
// it.
func (p *Proxy) pass(to, from net.Conn, change func(*Faults, []byte) []byte) {
	defer func() {
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
		_, _ = from.Close(), to.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		for p.faults.Load().Stall {
			time.Sleep(time.Millisecond)
			p.mu.Lock()
			ended := p.ended
			p.mu.Unlock()
			if ended {
				return
			}
		}
		more := change(p.faults.Load(), buf[:n])
		for _, b := range [][]byte{buf[:n], more} {
			if _, err := to.Write(b); err != nil {
				return
			}
		}
	}
}
