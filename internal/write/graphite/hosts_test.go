package graphite

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
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
