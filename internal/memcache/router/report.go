package router

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// WriteStats writes the counters as twemproxy does: one JSON object, with one of each pool, with one of each
// server. The order of twemproxy is kept for scripts that look for text.
func (r *Router) WriteStats(w io.Writer) error {
	host, _ := os.Hostname() // it is left out if it is not known
	b := []byte("{")
	text := func(name, value string) {
		b = append(append(b, strconv.Quote(name)+":"...), mustJSON(value)+", "...)
	}
	count := func(name string, n int64) { b = fmt.Appendf(b, "%q:%d, ", name, n) }
	end := func() { b = append(b[:len(b)-2], '}', ',', ' ') }
	pools := r.all()
	total, clients := int64(0), int64(0)
	for _, p := range pools {
		total += p.c.totalClients.Load()
		clients += p.c.clients.Load()
	}
	text("service", "nutcracker")
	text("source", host)
	text("version", "0.5.0")
	count("uptime", int64(time.Since(r.begun).Seconds()))
	count("timestamp", time.Now().Unix())
	count("total_connections", total)
	count("curr_connections", clients)
	for _, p := range pools {
		s := p.state.Load()
		b = append(b, mustJSON(s.conf.Name)+": {"...)
		count("client_eof", p.c.clientEOF.Load())
		count("client_err", p.c.clientErrors.Load())
		count("client_connections", p.c.clients.Load())
		count("server_ejects", p.c.ejects.Load())
		count("forward_error", p.c.forwardErrors.Load())
		count("fragments", p.c.fragments.Load())
		for _, server := range s.backends {
			c := &server.c
			queued, unsent, inQueue := server.queues()
			b = append(b, mustJSON(server.server.Name)+": {"...)
			count("server_eof", c.eof.Load())
			count("server_err", c.errors.Load())
			count("server_timedout", c.timedOut.Load())
			count("server_connections", c.connections.Load())
			count("server_ejected_at", c.ejectedAt.Load())
			count("requests", c.requests.Load())
			count("request_bytes", c.requestBytes.Load())
			count("responses", c.responses.Load())
			count("response_bytes", c.responseBytes.Load())
			count("in_queue", 0) // what is not sent is not cut into requests
			count("in_queue_bytes", unsent)
			count("out_queue", queued)
			count("out_queue_bytes", inQueue)
			end()
		}
		end()
	}
	end()
	b = append(b[:len(b)-2], '\n')
	_, err := w.Write(b)
	return err
}

func mustJSON(s string) string {
	text, _ := json.Marshal(s) // a string cannot fail
	return string(text)
}

// queues returns the requests that wait for a response, the bytes that are not sent, and those of the
// requests.
func (b *backend) queues() (queued, unsent, bytes int64) {
	for _, l := range b.links {
		l.mu.Lock()
		queued += int64(l.queued)
		unsent += int64(len(l.unsent))
		for i := range l.queued {
			bytes += int64(l.queue[(l.head+i)&(len(l.queue)-1)].sent)
		}
		l.mu.Unlock()
	}
	return queued, unsent, bytes
}

// ServeStats gives the counters to each connection, as twemproxy does on its port 22222, until the listener
// is closed.
func (r *Router) ServeStats(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // an error shows at the write
		_ = r.WriteStats(conn)                                // the reader may be gone
		_ = conn.Close()
	}
}

// Describe is [prometheus.Collector]: what there is depends on the configuration.
func (r *Router) Describe(chan<- *prometheus.Desc) {}

// metric is a counter or a gauge of a server.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*backend) int64
}

func ofServer(name, help string, kind prometheus.ValueType, value func(*backend) int64) metric {
	return metric{prometheus.NewDesc("memcached_router_"+name, help, []string{"pool", "server"}, nil), kind, value}
}

var serverMetrics = []metric{
	ofServer("requests_total", "Requests that were sent to the server.", prometheus.CounterValue, func(b *backend) int64 { return b.c.requests.Load() }),
	ofServer("request_bytes_total", "Bytes of those requests.", prometheus.CounterValue, func(b *backend) int64 { return b.c.requestBytes.Load() }),
	ofServer("responses_total", "Responses of the server.", prometheus.CounterValue, func(b *backend) int64 { return b.c.responses.Load() }),
	ofServer("response_bytes_total", "Bytes of those responses.", prometheus.CounterValue, func(b *backend) int64 { return b.c.responseBytes.Load() }),
	ofServer("hits_total", "Gets that found at least one value.", prometheus.CounterValue, func(b *backend) int64 { return b.c.hits.Load() }),
	ofServer("misses_total", "Gets that found nothing.", prometheus.CounterValue, func(b *backend) int64 { return b.c.misses.Load() }),
	ofServer("connections", "Open connections to the server.", prometheus.GaugeValue, func(b *backend) int64 { return b.c.connections.Load() }),
	ofServer("eof_total", "Connections that the server closed.", prometheus.CounterValue, func(b *backend) int64 { return b.c.eof.Load() }),
	ofServer("errors_total", "Connections that failed otherwise, or could not be made.", prometheus.CounterValue, func(b *backend) int64 { return b.c.errors.Load() }),
	ofServer("timeouts_total", "Times that responses did not come within the timeout of the pool.", prometheus.CounterValue, func(b *backend) int64 { return b.c.timedOut.Load() }),
	ofServer("late_responses_total", "Responses that came after their timeout and were passed over.", prometheus.CounterValue, func(b *backend) int64 { return b.c.strays.Load() }),
	ofServer("too_large_total", "Items that were refused because the server would not take them.", prometheus.CounterValue, func(b *backend) int64 { return b.c.tooLarge.Load() }),
	ofServer("item_size_max_bytes", "Largest item that the server takes, as it said; 0: not known.", prometheus.GaugeValue, func(b *backend) int64 { return b.itemMax.Load() }),
	ofServer("queue_requests", "Requests that wait for a response of the server.", prometheus.GaugeValue, func(b *backend) int64 { n, _, _ := b.queues(); return n }),
	ofServer("unsent_bytes", "Bytes that wait to be sent to the server.", prometheus.GaugeValue, func(b *backend) int64 { _, n, _ := b.queues(); return n }),
}

var (
	latencyDesc = prometheus.NewDesc("memcached_router_seconds", "Time from a request to its complete response, by command.", []string{"pool", "server", "command"}, nil)
	clientsDesc = prometheus.NewDesc("memcached_router_clients", "Connections of clients.", []string{"pool"}, nil)
	refusedDesc = prometheus.NewDesc("memcached_router_refused_clients_total", "Clients that were refused because there were too many.", []string{"pool"}, nil)
	ejectsDesc  = prometheus.NewDesc("memcached_router_ejects_total", "Times that a server was ejected.", []string{"pool"}, nil)
	forwardDesc = prometheus.NewDesc("memcached_router_forward_errors_total", "Requests that could not be sent to any server.", []string{"pool"}, nil)
)

// Collect is [prometheus.Collector].
func (r *Router) Collect(out chan<- prometheus.Metric) {
	for _, p := range r.all() {
		s := p.state.Load()
		name := s.conf.Name
		out <- prometheus.MustNewConstMetric(clientsDesc, prometheus.GaugeValue, float64(p.c.clients.Load()), name)
		out <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(p.c.refusedClients.Load()), name)
		out <- prometheus.MustNewConstMetric(ejectsDesc, prometheus.CounterValue, float64(p.c.ejects.Load()), name)
		out <- prometheus.MustNewConstMetric(forwardDesc, prometheus.CounterValue, float64(p.c.forwardErrors.Load()), name)
		for _, b := range s.backends {
			for _, m := range serverMetrics {
				out <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.value(b)), name, b.server.Name)
			}
			for o := range opCount {
				b.c.collect(out, name, b.server.Name, o)
			}
		}
	}
}

// collect hands out the latencies of a command, if it was used.
func (c *counters) collect(out chan<- prometheus.Metric, pool, server string, o op) {
	upTo, n := make(map[float64]uint64, buckets), uint64(0)
	for i := range buckets {
		n += uint64(c.latency[o][i].Load())
		upTo[float64(firstMicros)*float64(int(1)<<i)/1e6] = n
	}
	if n += uint64(c.latency[o][buckets].Load()); n > 0 {
		out <- prometheus.MustNewConstHistogram(latencyDesc, n, float64(c.latencySum[o].Load())/1e9, upTo, pool, server, opNames[o])
	}
}
