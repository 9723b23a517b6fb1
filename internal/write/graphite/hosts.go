package graphite

import (
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
// more than the other one will have; nil: none does. Of its connections it is the one that has been silent
// longest, and one whose rows are all durable if there is any. One that is not being read stays: it has lines
// that were not taken, or its end is about to confirm those that were.
func (h *hosts) choose(by netip.Addr) (chosen *peer) {
	most := h.most()
	if most == nil || len(most.conns) <= h.of(by)+1 {
		return nil
	}
	least, durable := time.Now().UnixNano(), false
	for p := range most.conns {
		since := p.waits.Load()
		if since == 0 || since > least && durable {
			continue
		}
		if done := p.durable(); done && !durable || done == durable && since < least {
			chosen, least, durable = p, since, done
		}
	}
	return chosen
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
