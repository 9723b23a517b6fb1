package router

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options are those of a router.
type Options struct {
	// MaxClients bounds the clients of a pool.
	MaxClients int
	Log        *ErrorLog
}

// Router serves pools.
type Router struct {
	o     Options
	begun time.Time

	mu    sync.Mutex
	pools []*pool
}

// pool is a pool that listens.
type pool struct {
	o     Options
	name  string
	addr  string // that it was told to listen on
	l     net.Listener
	state atomic.Pointer[state]
	c     poolCounters
	done  sync.WaitGroup // clients, connections to servers
	end   chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// Start serves pools. It fails if one of them cannot listen.
func Start(o Options, pools []Pool) (*Router, error) {
	r := &Router{o: o, begun: time.Now()}
	if err := r.Reload(pools); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Reload serves other pools. A pool that listens where one did before takes over its clients, and its
// connections to servers that it still has.
func (r *Router) Reload(pools []Pool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var next, opened []*pool
	for _, conf := range pools {
		p := r.listening(conf.Listen)
		if p == nil {
			var err error
			if p, err = listen(r.o, conf); err != nil {
				for _, p := range opened {
					p.close()
				}
				return fmt.Errorf("pool %s: %w", conf.Name, err)
			}
			opened = append(opened, p)
		}
		next = append(next, p)
	}
	for i, conf := range pools {
		if err := next[i].configure(conf); err != nil {
			return fmt.Errorf("pool %s: %w", conf.Name, err) // it was checked when it was read
		}
	}
	for _, p := range opened {
		p.done.Go(p.accept)
		p.done.Go(p.watch)
	}
	for _, p := range r.pools {
		kept := false
		for _, n := range next {
			kept = kept || n == p
		}
		if !kept {
			p.close()
		}
	}
	r.pools = next
	return nil
}

func (r *Router) listening(addr string) *pool {
	for _, p := range r.pools {
		if p.addr == addr {
			return p
		}
	}
	return nil
}

// Addr returns the address that a pool listens on.
func (r *Router) Addr(name string) net.Addr {
	for _, p := range r.all() {
		if p.name == name {
			return p.l.Addr()
		}
	}
	return nil
}

func (r *Router) all() []*pool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*pool(nil), r.pools...)
}

// Close ends all connections.
func (r *Router) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pools {
		p.close()
	}
	r.pools = nil
}

func listen(o Options, conf Pool) (*pool, error) {
	config := net.ListenConfig{KeepAlive: -1}
	if conf.KeepAlive {
		config.KeepAlive = 0 // as the net package does it
	}
	network := "tcp"
	if strings.HasPrefix(conf.Listen, "/") {
		network = "unix"
		if err := os.Remove(conf.Listen); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	l, err := config.Listen(context.Background(), network, conf.Listen)
	if err != nil {
		return nil, err
	}
	if conf.Perm != 0 {
		if err := os.Chmod(conf.Listen, conf.Perm); err != nil {
			_ = l.Close() // it is not served
			return nil, err
		}
	}
	return &pool{o: o, addr: conf.Listen, l: l, end: make(chan struct{}), conns: make(map[net.Conn]bool)}, nil
}

// configure gives a pool a new state. Servers that it keeps, keep their connections.
func (p *pool) configure(conf Pool) error {
	s, err := newState(conf, &p.c)
	if err != nil {
		return err
	}
	kept := map[string]*backend{}
	old := p.state.Load()
	if old != nil && old.conf.Connections == conf.Connections {
		for _, b := range old.backends {
			kept[b.server.Addr] = b
		}
	}
	for i, server := range conf.Servers {
		b := kept[server.Addr]
		delete(kept, server.Addr)
		if b == nil || b.server.Display != server.Display {
			b = newBackend(conf.Name, server, conf.Connections, p.o.Log, &p.done)
		}
		b.owner.Store(s)
		b.index.Store(int32(i))
		s.backends = append(s.backends, b)
	}
	p.mu.Lock()
	p.name = conf.Name
	p.mu.Unlock()
	p.state.Store(s)
	if old != nil {
		for _, b := range old.backends {
			if b.owner.Load() == old {
				p.done.Go(func() { p.retire(b) })
			}
		}
	}
	if conf.Preconnect {
		for _, b := range s.backends {
			for _, l := range b.links {
				l.open()
			}
		}
	}
	return nil
}

// retire closes the connections of a server that is not used any more, after the requests that it has.
func (p *pool) retire(b *backend) {
	const grace = 10 * time.Second
	for end := time.Now().Add(grace); time.Now().Before(end); {
		busy := false
		for _, l := range b.links {
			l.mu.Lock()
			busy = busy || l.queued > 0
			l.mu.Unlock()
		}
		// A client may have chosen the server a moment ago.
		select {
		case <-time.After(100 * time.Millisecond):
		case <-p.end:
			busy = false
		}
		if !busy {
			break
		}
	}
	b.close()
}

func (p *pool) accept() {
	for {
		conn, err := p.l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of file descriptors, most likely: clients that leave make room.
			select {
			case <-time.After(50 * time.Millisecond):
			case <-p.end:
				return
			}
			continue
		}
		p.c.totalClients.Add(1)
		if !p.keep(conn) {
			p.c.refusedClients.Add(1)
			_, _ = conn.Write([]byte("SERVER_ERROR too many connections\r\n")) // it may be gone
			_ = conn.Close()
			continue
		}
		p.done.Go(func() {
			err := (&client{p: p, conn: conn}).serve()
			if lost(err) {
				p.c.clientEOF.Add(1)
			} else if !errors.Is(err, net.ErrClosed) {
				p.c.clientErrors.Add(1)
			}
			p.forget(conn)
		})
	}
}

func (p *pool) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) >= p.o.MaxClients {
		return false
	}
	select {
	case <-p.end:
		return false
	default:
	}
	p.conns[conn] = true
	p.c.clients.Store(int64(len(p.conns)))
	return true
}

func (p *pool) forget(conn net.Conn) {
	_ = conn.Close() // it has been served
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	p.c.clients.Store(int64(len(p.conns)))
}

// watch expires requests.
func (p *pool) watch() {
	for {
		wait := time.Second
		if t := p.state.Load().conf.Timeout; t > 0 {
			wait = min(max(t/8, 2*time.Millisecond), time.Second)
		}
		select {
		case <-p.end:
			return
		case now := <-time.After(wait):
			s := p.state.Load()
			if s.conf.Timeout == 0 {
				continue
			}
			for _, b := range s.backends {
				for _, l := range b.links {
					l.expire(now, s.conf.Timeout)
				}
			}
		}
	}
}

func (p *pool) close() {
	close(p.end)
	_ = p.l.Close() // nothing is lost with it
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	if s := p.state.Load(); s != nil {
		for _, b := range s.backends {
			b.close()
		}
	}
	p.done.Wait()
}
