package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/memcache/items"
)

// metric is a counter or a gauge of the server.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*Server, *items.Counts) int64
}

func newMetric(name, help string, kind prometheus.ValueType, value func(*Server, *items.Counts) int64) metric {
	return metric{prometheus.NewDesc("memcached_server_"+name, help, nil, nil), kind, value}
}

func counted(name, help string, which items.Count) metric {
	return newMetric(name, help, prometheus.CounterValue, func(_ *Server, n *items.Counts) int64 { return n[which] })
}

var metrics = []metric{
	counted("gets_total", "Keys that clients asked for.", items.Gets),
	counted("hits_total", "Keys that were found, in memory or on the disk.", items.Hits),
	counted("disk_hits_total", "Items that were brought from the disk to memory.", items.DiskHits),
	counted("sets_total", "Values that clients sent.", items.Sets),
	counted("deletes_total", "Keys that clients deleted, or tried to.", items.Deletes),
	counted("touches_total", "Items whose expiry clients changed, or tried to.", items.Touches),
	counted("evictions_total", "Items that left memory for others.", items.Evictions),
	counted("evictions_unread_total", "Items that left memory for others before any client read them.", items.EvictedUnread),
	counted("evicted_bytes_total", "Bytes of items that left memory for others.", items.EvictedBytes),
	counted("expired_total", "Items that were removed from memory because they were over.", items.ExpiredItems),
	newMetric("items", "Items in memory.", prometheus.GaugeValue, func(_ *Server, n *items.Counts) int64 { return n[items.Items] }),
	newMetric("item_bytes", "Bytes of items in memory.", prometheus.GaugeValue, func(_ *Server, n *items.Counts) int64 { return n[items.Bytes] }),
	newMetric("limit_bytes", "Bytes that items in memory may take.", prometheus.GaugeValue, func(s *Server, _ *items.Counts) int64 { return s.items.Capacity() }),
	newMetric("connections", "Connections of clients.", prometheus.GaugeValue, func(s *Server, _ *items.Counts) int64 { return s.count.conns.Load() }),
	newMetric("connections_total", "Connections that clients made.", prometheus.CounterValue, func(s *Server, _ *items.Counts) int64 { return s.count.total.Load() }),
	newMetric("refused_connections_total", "Connections that were refused because there were too many.", prometheus.CounterValue, func(s *Server, _ *items.Counts) int64 { return s.count.refused.Load() }),
	newMetric("idle_connections_total", "Connections that were closed because they asked for nothing.", prometheus.CounterValue, func(s *Server, _ *items.Counts) int64 { return s.count.idle.Load() }),
	newMetric("binary_connections_total", "Connections that were closed because they spoke the binary protocol.", prometheus.CounterValue, func(s *Server, _ *items.Counts) int64 { return s.count.binary.Load() }),
	newMetric("read_bytes_total", "Bytes that clients sent.", prometheus.CounterValue, func(s *Server, _ *items.Counts) int64 { return s.count.read.Load() }),
	newMetric("written_bytes_total", "Bytes that were sent to clients.", prometheus.CounterValue, func(s *Server, _ *items.Counts) int64 { return s.count.written.Load() }),
	newMetric("too_large_total", "Values that were refused because they were larger than the largest item.", prometheus.CounterValue, func(s *Server, _ *items.Counts) int64 { return s.count.tooLarge.Load() }),
	newMetric("no_memory_total", "Requests that failed because there was no memory for their buffers.", prometheus.CounterValue, func(s *Server, _ *items.Counts) int64 { return s.count.noMemory.Load() }),
	newMetric("buffer_bytes", "Bytes of the large buffers of connections.", prometheus.GaugeValue, func(s *Server, _ *items.Counts) int64 { return s.buffers.total - s.buffers.left.Load() }),
	newMetric("buffer_limit_bytes", "Bytes that the large buffers of connections may take.", prometheus.GaugeValue, func(s *Server, _ *items.Counts) int64 { return s.buffers.total }),
}

// Describe is [prometheus.Collector].
func (s *Server) Describe(out chan<- *prometheus.Desc) {
	for _, m := range metrics {
		out <- m.desc
	}
}

// Collect is [prometheus.Collector].
func (s *Server) Collect(out chan<- prometheus.Metric) {
	n := s.items.Counts()
	for _, m := range metrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.value(s, &n)))
	}
}
