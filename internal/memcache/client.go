package memcache

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/memcache/hash"
	"github.com/shaledb/shale/internal/memcache/pipe"
)

// Call is a request and what became of it.
type Call = pipe.Call

// Options build a Client.
type Options struct {
	// Servers are HOST:PORT each, or dns+HOST:PORT for all addresses of a name.
	Servers []string
	// Hash is one of [hash.Kinds]; empty: rendezvous.
	Hash string
	// TLS, if set, is used for all connections.
	TLS *tls.Config
	// Connections is how many connections for reads each server has, besides one for writes; 0: 2.
	Connections int
	// MaxValue bounds the values that are read.
	MaxValue int
	// MaxWait bounds how long a read waits for a server. The wait is shorter for a server that is usually fast.
	// Bound, if set, is a further bound that may change; 0: no bound.
	MaxWait time.Duration
	Bound   func() time.Duration
	// Stall is how long a connection may be silent while requests wait for it; 0: 2 s.
	Stall time.Duration
	// Dialer dials; nil: the default. Resolve finds the addresses of a name; nil: the resolver of the system.
	Dialer  *net.Dialer
	Resolve func(ctx context.Context, host string) ([]string, error)
	// ResolveEvery is how often names are resolved; 0: 30 s.
	ResolveEvery time.Duration

	Registerer prometheus.Registerer
	Logger     *slog.Logger // nil: no log
}

// Client is a client of several servers. It is safe for concurrent use.
type Client struct {
	o    Options
	m    *metrics
	ring atomic.Pointer[ring]

	ctx  context.Context // ends with Close
	end  context.CancelFunc
	done sync.WaitGroup
}

// ring is the servers of one moment.
type ring struct {
	nodes  []*node
	picker hash.Picker // nil: no servers
}

// New returns a client. It dials when it is first used, so that a server that is down keeps nothing from
// starting. Only options that make no sense are an error.
func New(o Options) (*Client, error) {
	if o.Hash == "" {
		o.Hash = hash.Kinds()[0]
	}
	if o.Connections == 0 {
		o.Connections = 2
	}
	if o.Stall == 0 {
		o.Stall = 2 * time.Second
	}
	if o.Dialer == nil {
		o.Dialer = new(net.Dialer)
	}
	if o.Resolve == nil {
		o.Resolve = net.DefaultResolver.LookupHost
	}
	if o.ResolveEvery == 0 {
		o.ResolveEvery = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if _, err := hash.New(o.Hash, []string{"x:1"}); err != nil {
		return nil, err
	}
	if err := CheckServers(o.Servers); err != nil {
		return nil, err
	}
	c := &Client{o: o, m: newMetrics(o.Registerer)}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.ring.Store(&ring{})
	if err := c.discover(); err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends all connections. The client must not be used after that.
func (c *Client) Close() {
	c.end()
	c.done.Wait()
	for _, n := range c.ring.Load().nodes {
		n.close()
	}
}

// Read sends calls that ask for something, each to the server of its key, and waits for them until the
// deadline, or for a shorter time if a server is usually faster. A call that has no answer has an error.
func (c *Client) Read(ctx context.Context, deadline time.Time, calls []Call) {
	c.spread(ctx, deadline, calls, false)
}

// Write sends calls that store or remove something. A call that was not carried out has an error.
func (c *Client) Write(ctx context.Context, deadline time.Time, calls []Call) {
	c.spread(ctx, deadline, calls, true)
}

// Most returns how long a read of any server may take.
func (c *Client) Most() time.Duration {
	if c.o.Bound != nil {
		if b := c.o.Bound(); b > 0 {
			return min(c.o.MaxWait, max(b, leastWait))
		}
	}
	return c.o.MaxWait
}

// Wait returns how long a read of a key may take.
func (c *Client) Wait(key []byte) time.Duration {
	r := c.ring.Load()
	if r.picker == nil {
		return 0
	}
	return r.nodes[r.picker.Pick(key)].wait()
}

// spread gives calls to their servers, which work at the same time.
func (c *Client) spread(ctx context.Context, deadline time.Time, calls []Call, write bool) {
	r := c.ring.Load()
	if r.picker == nil {
		for i := range calls {
			calls[i].Err = ErrNoServer
		}
		return
	}
	if len(calls) == 1 {
		n := r.nodes[r.picker.Pick(calls[0].Request.Key)]
		if calls[0].Err = n.check(&calls[0]); calls[0].Err == nil {
			n.carry(ctx, deadline, calls, write)
		}
		return
	}
	places := make([][]int, len(r.nodes))
	for i := range calls {
		at := r.picker.Pick(calls[i].Request.Key)
		if calls[i].Err = r.nodes[at].check(&calls[i]); calls[i].Err == nil {
			places[at] = append(places[at], i)
		}
	}
	var servers sync.WaitGroup
	for at, of := range places {
		if len(of) == 0 {
			continue
		}
		servers.Go(func() {
			own := make([]Call, len(of))
			for i, place := range of {
				own[i] = calls[place]
			}
			r.nodes[at].carry(ctx, deadline, own, write)
			for i, place := range of {
				calls[place] = own[i]
			}
		})
	}
	servers.Wait()
}

// Status is what is known of a server.
type Status struct {
	// Addr is HOST:PORT. Version is empty until it has been reached.
	Addr, Version string
	State         State
	// ItemMax is the largest item that it takes, in bytes. Wait is how long a read of it may take.
	ItemMax int64
	Wait    time.Duration
}

// Status returns what is known of each server.
func (c *Client) Status() (all []Status) {
	for _, n := range c.ring.Load().nodes {
		s := Status{Addr: n.addr, State: n.breaker.current(), ItemMax: n.itemMax.Load(), Wait: n.wait()}
		if v := n.version.Load(); v != nil {
			s.Version = *v
		}
		all = append(all, s)
	}
	return all
}

// CheckServers returns an error if a text does not name servers.
func CheckServers(servers []string) error {
	if len(servers) == 0 {
		return fmt.Errorf("no memcached server is named")
	}
	for _, s := range servers {
		if _, _, err := splitServer(s); err != nil {
			return err
		}
	}
	return nil
}
