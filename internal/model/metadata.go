package model

// Metadata describes a metric family, as senders sent it. Type is a type name of Prometheus: counter, gauge,
// histogram, gaugehistogram, summary, info, stateset or unknown.
type Metadata struct {
	Type, Help, Unit string
}
