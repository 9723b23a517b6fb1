package graphite

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

const (
	// udpSocketBytes is the receive buffer that is requested from the kernel.
	udpSocketBytes = 8 << 20
	// udpQueue is how many full chunks may wait for the disk. With 16,384 rows each they cover about
	// half a second of 300,000 points/s.
	udpQueue = 8
	// udpLinger lets the rows of many datagrams share a push.
	udpLinger = 100 * time.Millisecond
	// maxDatagram is the size of the largest UDP datagram.
	maxDatagram = 64 << 10
)

// serveDatagrams reads the UDP socket until Close, and returns when all rows are durable.
func (l *Listener) serveDatagrams() {
	g := newQueue(l, model.DefaultTenant, l.metrics.udp, udpQueue, udpLinger)
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.run(l.ctx)
	}()
	var peer netip.AddrPort
	p := l.newParser("", model.DefaultTenant)
	p.datagram = true
	p.reportBad = func(line []byte, why string) { l.log.badLine(peer.String(), line, why) }
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := l.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			if l.stopBy.Load() != 0 {
				break
			}
			l.log.failure("cannot read a datagram", "error", err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		peer = from
		l.metrics.udp.bytes.Add(float64(n))
		l.addDatagram(g, p, buf[:n])
	}
	g.close()
	<-done
}

// addDatagram parses the lines of a datagram. It drops those for which there is no memory, because UDP has
// no back-pressure.
func (l *Listener) addDatagram(g *queue, p *parser, lines []byte) {
	p.rest = lines
	g.offer(l.ctx, p, len(lines))
	l.count(l.metrics.udp, p)
	if len(p.rest) == 0 {
		return
	}
	n := countDatagramLines(p.rest)
	l.metrics.droppedDatagrams.Inc()
	l.metrics.udp.dropped.Add(float64(n))
	l.o.Sink.Discard(p.tenant, write.ReasonOverload, n)
	l.log.failure("datagram dropped: no memory for its points", "lines", n)
}

// datagramLines parses what stands between two newlines of a datagram. Carbon splits datagrams by
// Python's str.splitlines, and lines of TCP at newlines only.
func (p *parser) datagramLines(b []byte, c *chunk) {
	p.counts.lines--
	for line := range bytes.FieldsFuncSeq(b, isLineBreak) {
		p.counts.lines++
		p.line(line, c)
	}
}

// countDatagramLines counts the lines of a datagram that are not empty.
func countDatagramLines(b []byte) (n int) {
	for range bytes.FieldsFuncSeq(b, isLineBreak) {
		n++
	}
	return n
}

// isLineBreak reports whether Python's str.splitlines ends a line at r.
func isLineBreak(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}
