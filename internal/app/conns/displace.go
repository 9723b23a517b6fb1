package conns

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/shaledb/shale/internal/peerhost"
)

// How long a connection must have waited for a request before it is closed for another one.
const (
	// idleLeast is for one of which nothing has come: after a shorter time, its next request may well be on
	// its way.
	idleLeast = time.Second
	// headerLeast is for one of which a part of the header has come, or of a TLS handshake. Both are small,
	// so the rest is hardly on its way after that time.
	headerLeast = 2 * time.Second
)

// host counts the connections of one host, without those that were hijacked. The mutex of [Connections]
// guards it.
type host struct {
	addr netip.Addr
	open int
}

// enter counts a new connection.
func (c *Connections) enter(conn *connection) {
	at := peerhost.Of(conn.RemoteAddr())
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[at]
	if h == nil {
		h = &host{addr: at}
		c.hosts[at] = h
	}
	h.open++
	conn.host = h
	c.open[conn] = struct{}{}
}

// uncount takes a connection out of the count of its host. REQUIRES: c.mu is held.
func (c *Connections) uncount(conn *connection) {
	h := conn.host
	if h == nil {
		return
	}
	conn.host = nil
	if h.open--; h.open == 0 {
		delete(c.hosts, h.addr)
	}
}

// displace closes a connection that waits for a request, if there is one: of the host with the most
// connections the one that has been idle longest, or else the one whose header is overdue for longest. One
// whose request is being served stays, however slowly its body comes.
func (c *Connections) displace() {
	if conn := c.leastNeeded(time.Now()); conn != nil {
		c.displaced.Inc()
		_ = conn.Close()
	}
}

// leastNeeded returns the connection that gives way, and takes it out of the count.
func (c *Connections) leastNeeded(now time.Time) *connection {
	idle, header := now.Add(-idleLeast).UnixNano(), now.Add(-headerLeast).UnixNano()
	var least *connection
	var since int64 // of least, as in connection.waits
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		waits := conn.waits.Load()
		if conn.host == nil || waits == 0 || waits > idle || waits < 0 && -waits > header {
			continue
		}
		if least == nil || cmp.Or(cmp.Compare(conn.host.open, least.host.open), compareWaits(since, waits)) > 0 {
			least, since = conn, waits
		}
	}
	if least == nil || !least.waits.CompareAndSwap(since, 0) { // something has come
		return nil
	}
	least.gaveWay.Store(true)
	c.uncount(least)
	return least
}

// compareWaits compares two values of connection.waits by which connection gives way first: an idle one
// before one with a part of a header, and the older one of two alike. Connections of Graphite have the same
// order (see internal/write/graphite/hosts.go).
func compareWaits(a, b int64) int {
	if a > 0 && b > 0 {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(b, a)
}
