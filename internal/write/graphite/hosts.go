package graphite

import (
	"container/heap"
	"net"
	"net/netip"
)

// hosts are the open connections, by the hosts at their other ends. Each change takes about the same time
// however many there are: whoever opens connections must not make those of others wait. It is used by one
// goroutine at a time.
type hosts struct {
	open int // connections
	by   map[netip.Addr]*host
	heap hostHeap
}

// host is one with open connections.
type host struct {
	addr  netip.Addr
	conns map[net.Conn]*peer
	place int // in the heap
}

func newHosts() *hosts { return &hosts{by: map[netip.Addr]*host{}} }

func (h *hosts) add(nc net.Conn) {
	p := peerOf(nc)
	at := p.host()
	of := h.by[at]
	if of == nil {
		of = &host{addr: at, conns: map[net.Conn]*peer{}}
		h.by[at] = of
		heap.Push(&h.heap, of)
	}
	of.conns[nc] = p
	h.open++
	heap.Fix(&h.heap, of.place)
}

// remove removes a connection, unless that was done.
func (h *hosts) remove(nc net.Conn) {
	of := h.by[peerOf(nc).host()]
	if of == nil || of.conns[nc] == nil {
		return
	}
	delete(of.conns, nc)
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

// all calls f with each connection.
func (h *hosts) all(f func(net.Conn, *peer)) {
	for _, of := range h.by {
		for nc, p := range of.conns {
			f(nc, p)
		}
	}
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
