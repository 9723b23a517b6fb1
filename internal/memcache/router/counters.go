package router

import (
	"math/bits"
	"sync/atomic"
)

// buckets of latencies: 64 µs and its doubles, up to 8 s.
const (
	buckets     = 18
	firstMicros = 64
)

// counters are those of a server.
type counters struct {
	eof, errors, timedOut, connections, ejectedAt    atomic.Int64
	requests, requestBytes, responses, responseBytes atomic.Int64
	hits, misses, tooLarge, strays                   atomic.Int64
	latency                                          [opCount][buckets + 1]atomic.Int64
	latencySum                                       [opCount]atomic.Int64 // nanoseconds
}

// took counts a response by its command and time.
func (c *counters) took(o op, nanos int64) {
	at := min(bits.Len64(uint64(max(0, nanos))/1000/firstMicros), buckets)
	c.latency[o][at].Add(1)
	c.latencySum[o].Add(nanos)
}

// poolCounters are those of a pool.
type poolCounters struct {
	clientEOF, clientErrors, clients, totalClients, refusedClients atomic.Int64
	ejects, forwardErrors, fragments                               atomic.Int64
}
