package kafka

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// ProducerMetrics are the metrics of the producer of a process.
type ProducerMetrics struct {
	seconds                             prometheus.Histogram
	batches, records, bytes, full, lost prometheus.Counter
	of                                  atomic.Pointer[Producer] // the one that was opened last
}

// NewProducerMetrics registers the metrics of a producer, and of those that follow it.
func NewProducerMetrics(reg prometheus.Registerer) *ProducerMetrics {
	f := promauto.With(reg)
	m := new(ProducerMetrics)
	gauge := func(name, help string, of func(*Producer) float64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if p := m.of.Load(); p != nil {
				return of(p)
			}
			return 0
		})
	}
	gauge("shale_kafka_queue_bytes", "Bytes of batches that wait for Kafka, from before they are encoded until Kafka has answered.",
		func(p *Producer) float64 { return float64(p.Held()) })
	gauge("shale_kafka_topic_wrong", "Whether the topic is not the recorded one, so that all writes are refused.", func(p *Producer) float64 {
		if p.wrong.Load() != nil {
			return 1
		}
		return 0
	})
	gauge("shale_kafka_last_response_age_seconds", "Seconds since a broker last answered this process for the topic that it writes to.",
		func(p *Producer) float64 { return p.health.age().Seconds() })
	m.seconds = f.NewHistogram(prometheus.HistogramOpts{
		Name: "shale_kafka_append_seconds", Help: "Duration of an append that Kafka acknowledged, with the wait for memory, in seconds.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)})
	m.batches = f.NewCounter(prometheus.CounterOpts{Name: "shale_kafka_batches_total", Help: "Batches that Kafka acknowledged."})
	m.records = f.NewCounter(prometheus.CounterOpts{Name: "shale_kafka_records_total", Help: "Records that Kafka acknowledged: the parts of batches by partition."})
	m.bytes = f.NewCounter(prometheus.CounterOpts{Name: "shale_kafka_append_bytes_total", Help: "Bytes of records that Kafka acknowledged."})
	m.full = f.NewCounter(prometheus.CounterOpts{Name: "shale_kafka_full_total", Help: "Batches that were refused because the memory for batches that wait for Kafka was full."})
	m.lost = f.NewCounter(prometheus.CounterOpts{Name: "shale_kafka_append_errors_total", Help: "Batches that Kafka did not acknowledge in time, or refused, and may have stored."})
	return m
}

// appended counts a batch whose append has ended.
func (m *ProducerMetrics) appended(parts []part, took time.Duration, err error) {
	if err != nil {
		m.lost.Inc()
		return
	}
	m.seconds.Observe(took.Seconds())
	m.batches.Inc()
	m.records.Add(float64(len(parts)))
	n := 0
	for i := range parts {
		n += len(parts[i].record)
	}
	m.bytes.Add(float64(n))
}

// ReaderMetrics are the metrics of all readers of a process.
type ReaderMetrics struct {
	records, bytes *prometheus.CounterVec
	lag            *prometheus.GaugeVec
	answered       *prometheus.GaugeVec
	failed         *prometheus.GaugeVec
}

// NewReaderMetrics registers the metrics of readers.
func NewReaderMetrics(reg prometheus.Registerer) *ReaderMetrics {
	f := promauto.With(reg)
	label := []string{"topic", "partition"}
	return &ReaderMetrics{
		records:  f.NewCounterVec(prometheus.CounterOpts{Name: "shale_partition_read_records_total", Help: "Records read of a partition."}, label),
		bytes:    f.NewCounterVec(prometheus.CounterOpts{Name: "shale_partition_read_bytes_total", Help: "Bytes of records read of a partition."}, label),
		lag:      f.NewGaugeVec(prometheus.GaugeOpts{Name: "shale_partition_lag_records", Help: "Records of a partition that are not read yet, as of the last response of Kafka."}, label),
		answered: f.NewGaugeVec(prometheus.GaugeOpts{Name: "shale_partition_last_response_seconds", Help: "Unix time at which a broker last answered the reader of a partition; the lag is as of this time."}, label),
		failed:   f.NewGaugeVec(prometheus.GaugeOpts{Name: "shale_partition_reader_failed", Help: "Whether the reader of a partition has stopped at a gap, a record that cannot be read, or another topic."}, label),
	}
}

// Forget removes what a partition is like now, once another process has it. What was counted stays.
func (m *ReaderMetrics) Forget(topic string, partition int32) {
	if m != nil {
		for _, v := range []*prometheus.GaugeVec{m.lag, m.answered, m.failed} {
			v.DeleteLabelValues(topic, name(partition))
		}
	}
}

// name is the value of the label of a partition.
func name(partition int32) string { return strconv.Itoa(int(partition)) }
