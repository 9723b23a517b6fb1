package kafka

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type producerMetrics struct {
	seconds                             prometheus.Histogram
	batches, records, bytes, full, lost prometheus.Counter
}

func newProducerMetrics(reg prometheus.Registerer, p *Producer) *producerMetrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_kafka_queue_bytes", Help: "Bytes of batches that wait for Kafka, from before they are encoded until Kafka has answered.",
	}, func() float64 { return float64(p.Held()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_kafka_topic_wrong", Help: "Whether the topic is not the recorded one, so that all writes are refused.",
	}, func() float64 {
		if p.wrong.Load() != nil {
			return 1
		}
		return 0
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shale_kafka_last_response_age_seconds", Help: "Seconds since a broker last answered this process for the topic that it writes to.",
	}, func() float64 { return p.health.age().Seconds() })
	return &producerMetrics{
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "shale_kafka_append_seconds", Help: "Duration of an append that Kafka acknowledged, with the wait for memory, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)}),
		batches: f.NewCounter(prometheus.CounterOpts{Name: "shale_kafka_batches_total", Help: "Batches that Kafka acknowledged."}),
		records: f.NewCounter(prometheus.CounterOpts{Name: "shale_kafka_records_total", Help: "Records that Kafka acknowledged: the parts of batches by partition."}),
		bytes:   f.NewCounter(prometheus.CounterOpts{Name: "shale_kafka_append_bytes_total", Help: "Bytes of records that Kafka acknowledged."}),
		full:    f.NewCounter(prometheus.CounterOpts{Name: "shale_kafka_full_total", Help: "Batches that were refused because the memory for batches that wait for Kafka was full."}),
		lost:    f.NewCounter(prometheus.CounterOpts{Name: "shale_kafka_append_errors_total", Help: "Batches that Kafka did not acknowledge in time, or refused. They may be stored."}),
	}
}

// appended counts a batch whose append has ended.
func (m *producerMetrics) appended(parts []part, took time.Duration, err error) {
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
	label := []string{"partition"}
	return &ReaderMetrics{
		records:  f.NewCounterVec(prometheus.CounterOpts{Name: "shale_partition_read_records_total", Help: "Records read of a partition."}, label),
		bytes:    f.NewCounterVec(prometheus.CounterOpts{Name: "shale_partition_read_bytes_total", Help: "Bytes of records read of a partition."}, label),
		lag:      f.NewGaugeVec(prometheus.GaugeOpts{Name: "shale_partition_lag_records", Help: "Records of a partition that are not read yet, as of the last response of Kafka."}, label),
		answered: f.NewGaugeVec(prometheus.GaugeOpts{Name: "shale_partition_last_response_seconds", Help: "When a broker last answered the reader of a partition, in Unix seconds. The lag is that of this time."}, label),
		failed:   f.NewGaugeVec(prometheus.GaugeOpts{Name: "shale_partition_reader_failed", Help: "Whether the reader of a partition has stopped at a gap, a record that cannot be read, or another topic."}, label),
	}
}

// Forget removes what a partition is like now, once another process has it. What was counted stays.
func (m *ReaderMetrics) Forget(partition int32) {
	if m != nil {
		for _, v := range []*prometheus.GaugeVec{m.lag, m.answered, m.failed} {
			v.DeleteLabelValues(name(partition))
		}
	}
}

// name is the value of the label of a partition.
func name(partition int32) string { return strconv.Itoa(int(partition)) }
