package graphite

import (
	"net/netip"
	"time"

	"github.com/shaledb/shale/internal/write"
)

const (
	// udpSocketBytes is asked of the system for datagrams that have not been read.
	udpSocketBytes = 8 << 20
	// udpQueue is the number of full chunks that may wait for the disk. At 16,384 rows each they bridge half a second
	// of 300,000 points/s.
	udpQueue = 8
	// udpLinger lets the rows of many datagrams share a push.
	udpLinger = 100 * time.Millisecond
	// maxDatagram is the largest that UDP has.
	maxDatagram = 64 << 10
)

// datagrams reads the UDP socket until Close, and returns when all rows are durable.
func (l *Listener) datagrams() {
	g := newGather(l, l.metrics.udp, udpQueue, udpLinger)
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.run(l.ctx)
	}()
	var peer netip.AddrPort
	p := l.newParser("")
	p.complain = func(line []byte, why string) { l.log.badLine(peer.String(), line, why) }
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := l.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			if l.stopBy.Load() != 0 {
				break
			}
			l.log.trouble("reading a datagram", "error", err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		peer = from
		l.metrics.udp.bytes.Add(float64(n))
		l.datagram(g, p, buf[:n])
	}
	g.end()
	<-done
}

// datagram takes the lines of a datagram, or drops those for which there is no room: UDP has no way to hold its
// senders back.
func (l *Listener) datagram(g *gather, p *parser, lines []byte) {
	p.rest = lines
	g.offer(l.ctx, p, len(lines))
	l.count(l.metrics.udp, p)
	if len(p.rest) == 0 {
		return
	}
	n := countLines(p.rest)
	l.metrics.droppedDatagrams.Inc()
	l.metrics.udp.dropped.Add(float64(n))
	l.o.Sink.Discard(write.ReasonOverload, n)
	l.log.trouble("datagrams are dropped: there is no room for their rows", "lines", n)
}
