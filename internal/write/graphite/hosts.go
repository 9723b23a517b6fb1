package graphite

import (
	"cmp"
	"container/heap"
	"net/netip"
	"time"
)

// hosts are open connections, by the hosts at their other ends. Each change takes about the same time
// however many there are: whoever opens connections must not make those of others wait. It is used by one
// goroutine at a time.
type hosts struct {
	open   int // connections
	ending int // those that gave way and have not ended; they are not among the open ones
	by     map[netip.Addr]*host
	heap   hostHeap
}

// host is one with open connections.
type host struct {
	addr  netip.Addr
	conns map[*peer]struct{}
	place int // in the heap
}

func newHosts() *hosts { return &hosts{by: map[netip.Addr]*host{}} }

func (h *hosts) add(p *peer) {
	at := p.host()
	of := h.by[at]
	if of == nil {
		of = &host{addr: at, conns: map[*peer]struct{}{}}
		h.by[at] = of
		heap.Push(&h.heap, of)
	}
	of.conns[p] = struct{}{}
	h.open++
	heap.Fix(&h.heap, of.place)
	p.in = h
}

// remove removes a connection, unless that was done.
func (h *hosts) remove(p *peer) {
	if p.in != h {
		return
	}
	p.in = nil
	of := h.by[p.host()]
	delete(of.conns, p)
	h.open--
	if len(of.conns) > 0 {
		heap.Fix(&h.heap, of.place)
		return
	}
	heap.Remove(&h.heap, of.place)
	delete(h.by, of.addr)
}

// of returns how many connections a host has.
func (h *hosts) of(at netip.Addr) int {
	if of := h.by[at]; of != nil {
		return len(of.conns)
	}
	return 0
}

// most returns the host with the most connections, or nil.
func (h *hosts) most() *host {
	if len(h.heap) == 0 {
		return nil
	}
	return h.heap[0]
}

// choose returns the connection that gives way to one of a host: one of the host with the most, if that has
// more than the other one will have; nil: none does. One that is not being read stays: it has lines that were
// not taken, or its end is about to confirm those that were.
func (h *hosts) choose(by netip.Addr) (chosen *peer) {
	most := h.most()
	if most == nil || len(most.conns) <= h.of(by)+1 {
		return nil
	}
	var least need
	now := time.Now()
	for p := range most.conns {
		if n, ok := p.need(now); ok && (chosen == nil || n.compare(least) < 0) {
			chosen, least = p, n
		}
	}
	return chosen
}

// begunTime is for how long a connection may be in the middle of a line before it counts as idle: as long as
// a frame may take. A header of HTTP that takes too long ends its connection.
const begunTime = time.Minute

// need says how much a connection is needed that is being read.
type need struct {
	begun   bool  // it is in the middle of a line, of a frame or of a handshake: that would be lost
	pending bool  // it has rows that are not durable
	since   int64 // since when, and otherwise since when it has been silent, as Unix nanoseconds
}

// need returns how much the connection is needed, unless it is not being read. Bytes that come one by one do
// not make a line look newer.
func (p *peer) need(now time.Time) (n need, ok bool) {
	n.since = p.waits.Load()
	if n.since == 0 {
		return n, false
	}
	if begun := p.begun.Load(); begun != 0 {
		n.begun, n.since = begun > now.Add(-begunTime).UnixNano(), begun
	}
	n.pending = !p.durable()
	return n, true
}

// compare compares two connections by which is needed less and gives way first: an idle one before one in
// the middle of a line, as over HTTP (see internal/app/conns/displace.go), then one whose rows are all
// durable before another one, and then the one that has been so for longer.
func (n need) compare(other need) int {
	return cmp.Or(falseFirst(n.begun, other.begun), falseFirst(n.pending, other.pending), cmp.Compare(n.since, other.since))
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// hostHeap has the host with the most connections first.
type hostHeap []*host

func (h hostHeap) Len() int           { return len(h) }
func (h hostHeap) Less(i, j int) bool { return len(h[i].conns) > len(h[j].conns) }

func (h hostHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is [heap.Interface.Push].
func (h *hostHeap) Push(x any) {
	of := x.(*host)
	of.place = len(*h)
	*h = append(*h, of)
}

// Pop is [heap.Interface.Pop].
func (h *hostHeap) Pop() any {
	last := len(*h) - 1
	of := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return of
}
