package model

// Metadata describes a metric family, as senders tell it. Type is a word of Prometheus: counter, gauge, histogram,
// gaugehistogram, summary, info, stateset or unknown.
type Metadata struct {
	Type, Help, Unit string
}
