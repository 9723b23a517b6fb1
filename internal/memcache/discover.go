package memcache

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/memcache/hash"
)

// dnsPrefix marks a server whose name stands for all of its addresses.
const dnsPrefix = "dns+"

// found is a server with its name, which its certificate is checked against.
type found struct{ name, addr string }

// splitServer returns HOST:PORT of a server, and whether it is to be resolved.
func splitServer(server string) (addr string, resolve bool, err error) {
	addr, resolve = strings.CutPrefix(server, dnsPrefix)
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || host == "" || strings.ContainsAny(host, "+/, ") {
		return "", false, fmt.Errorf("%q is not a memcached server: write HOST:PORT, or dns+HOST:PORT for all addresses of a name", server)
	}
	return addr, resolve, nil
}

// discover finds the servers, and again from time to time if some are to be resolved. It does not wait for
// the first resolution.
func (c *Client) discover() error {
	resolves := false
	var fixed []found
	for _, s := range c.o.Servers {
		addr, resolve, err := splitServer(s)
		if err != nil {
			return err
		}
		if resolves = resolves || resolve; !resolve {
			fixed = append(fixed, found{addr, addr})
		}
	}
	if err := c.use(fixed); err != nil || !resolves {
		return err
	}
	c.done.Go(func() {
		tick := time.NewTicker(c.o.ResolveEvery)
		defer tick.Stop()
		for {
			c.refresh()
			select {
			case <-c.ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return nil
}

// refresh resolves all names. A name that cannot be resolved keeps its servers: they may work.
func (c *Client) refresh() {
	var all []found
	for _, s := range c.o.Servers {
		addr, resolve, _ := splitServer(s) // discover has checked it
		if !resolve {
			all = append(all, found{addr, addr})
			continue
		}
		host, port, _ := net.SplitHostPort(addr)
		ctx, cancel := context.WithTimeout(c.ctx, c.o.ResolveEvery)
		addrs, err := c.o.Resolve(ctx, host)
		cancel()
		if c.ctx.Err() != nil {
			return
		}
		if err != nil || len(addrs) == 0 {
			c.m.failedLookups.Inc()
			c.o.Logger.Warn("cannot resolve the name of memcached servers; those known from before are used", "name", host, "err", err)
			for _, n := range c.ring.Load().nodes {
				if n.name == addr {
					all = append(all, found{addr, n.addr})
				}
			}
			continue
		}
		for _, a := range addrs {
			all = append(all, found{addr, net.JoinHostPort(a, port)})
		}
	}
	_ = c.use(all) // New has checked the kind of hash
}

// use makes the servers the ring. Those that were in it before keep their connections.
func (c *Client) use(all []found) error {
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.addr, b.addr) })
	all = slices.CompactFunc(all, func(a, b found) bool { return a.addr == b.addr })
	old, next := c.ring.Load(), &ring{}
	var names []string
	for _, f := range all {
		names = append(names, f.addr)
		i := slices.IndexFunc(old.nodes, func(n *node) bool { return n.addr == f.addr })
		if i < 0 {
			next.nodes = append(next.nodes, newNode(c, f.name, f.addr))
		} else {
			next.nodes = append(next.nodes, old.nodes[i])
		}
	}
	if len(names) > 0 {
		var err error
		if next.picker, err = hash.New(c.o.Hash, names); err != nil {
			return err
		}
	}
	c.ring.Store(next)
	for _, n := range old.nodes {
		if !slices.Contains(next.nodes, n) {
			c.o.Logger.Info("a memcached server is gone from the servers of its name", "server", n.addr)
			n.close()
		}
	}
	c.m.servers.Set(float64(len(next.nodes)))
	return nil
}
