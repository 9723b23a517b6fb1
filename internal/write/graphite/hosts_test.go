package graphite

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// connFrom is a connection from a host.
type connFrom struct {
	net.Conn
	host netip.Addr
}

func (c *connFrom) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.host, 1))
}

func hostNumber(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}) }

// TestHosts: the host with the most connections is the right one, whatever comes and goes.
func TestHosts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	h, open := newHosts(), map[*peer]int{}
	for range 20_000 {
		if n := r.IntN(20); r.IntN(2) == 0 {
			nc := &peer{Conn: &connFrom{host: hostNumber(n)}}
			open[nc] = n
			h.add(nc)
		}
		for nc := range open {
			if r.IntN(2) == 0 {
				h.remove(nc)
				delete(open, nc)
				h.remove(nc) // as when one that was displaced ends
			}
			break
		}
		count, most := map[int]int{}, 0
		for _, n := range open {
			count[n]++
			most = max(most, count[n])
		}
		for n := range 20 {
			if got := h.of(hostNumber(n)); got != count[n] {
				t.Fatalf("host %d has %d connections, expected %d", n, got, count[n])
			}
		}
		switch m := h.most(); {
		case h.open != len(open):
			t.Fatalf("%d connections are open, expected %d", h.open, len(open))
		case m == nil && most > 0, m != nil && len(m.conns) != most:
			t.Fatalf("the most connections of a host are %d, got %+v", most, m)
		}
	}
}

// TestLeastNeeded: an idle connection gives way before one in the middle of a line, also if that has been
// silent for longer. Bytes that come one by one do not hold a connection for longer than a minute.
func TestLeastNeeded(t *testing.T) {
	type conn struct {
		silent, begun time.Duration // begun 0: it is between two lines
		pending       bool
	}
	busy := conn{silent: -1}
	for _, c := range []struct {
		name  string
		conns []conn
		want  int
	}{
		{"silent longest", []conn{{silent: 1}, {silent: 3}, {silent: 2}}, 1},
		{"not durable", []conn{{silent: 3, pending: true}, {silent: 2}, {silent: 1}}, 1},
		{"not being read", []conn{busy, {silent: 1}, busy}, 1},
		{"in the middle of a line", []conn{{silent: 30, begun: 30}, {silent: 1}, {silent: 20, begun: 20}}, 1},
		{"idle and not durable", []conn{{silent: 30, begun: 30}, {silent: 1, pending: true}, busy}, 1},
		{"in the middle for longest", []conn{{silent: 20, begun: 20}, {silent: 1, begun: 30}, {silent: 25, begun: 25}}, 1},
		{"in the middle for too long", []conn{{silent: 30}, {silent: 1, begun: 61}, {silent: 50, begun: 50}}, 1},
		{"idle for longer than that", []conn{{silent: 1, begun: 61}, {silent: 62}, busy}, 1},
	} {
		h, now := newHosts(), time.Now()
		ago := func(seconds time.Duration) int64 { return now.Add(-seconds * time.Second).UnixNano() }
		var all []*peer
		for _, c := range c.conns {
			p := &peer{Conn: &connFrom{host: hostNumber(1)}}
			if c.silent >= 0 {
				p.waits.Store(ago(c.silent))
			}
			if c.begun > 0 {
				p.begun.Store(ago(c.begun))
			}
			p.queue.Store(&queue{pushing: c.pending})
			h.add(p)
			all = append(all, p)
		}
		if got := slices.Index(all, h.choose(hostNumber(2))); got != c.want {
			t.Errorf("%s: connection %d gives way, want %d", c.name, got, c.want)
		}
	}
}

// TestRefusingIsCheap: what refuses a connection looks at none of those that are open, however many there
// are.
func TestRefusingIsCheap(t *testing.T) {
	h := newHosts()
	for n := range 10_000 {
		h.add(&peer{Conn: &connFrom{host: hostNumber(n)}})
	}
	by := hostNumber(0)
	if n := testing.AllocsPerRun(100, func() {
		if h.choose(by) != nil {
			t.Error("one of as many is closed")
		}
	}); n > 0 {
		t.Errorf("refusing takes %v allocations", n)
	}
}
