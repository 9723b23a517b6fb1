package model

import "math"

// Signal separates metrics from logs. A part holds one signal, and the labels of the two are separate.
type Signal uint8

// The signals, as they are stored.
const (
	Metrics Signal = 1
	Logs    Signal = 2
)

// String returns the name of the signal in messages and file names.
func (s Signal) String() string {
	switch s {
	case Metrics:
		return "metrics"
	case Logs:
		return "logs"
	}
	return "unknown signal"
}

// Family is the type of the rows in a section of a part or of a journal record.
type Family uint8

// The families, as they are stored. A float and a histogram of one series share a family, since they are
// samples of one curve.
const (
	Samples   Family = 1
	Exemplars Family = 2
	Text      Family = 3
)

// TimeRange is a closed interval of Unix nanoseconds.
type TimeRange struct {
	Min, Max int64
}

// Always returns the range of all times.
func Always() TimeRange { return TimeRange{Min: math.MinInt64, Max: math.MaxInt64} }

// Overlaps reports whether the two intervals share an instant.
func (r TimeRange) Overlaps(o TimeRange) bool { return r.Min <= o.Max && o.Min <= r.Max }

// Contains reports whether t is in the interval.
func (r TimeRange) Contains(t int64) bool { return r.Min <= t && t <= r.Max }

// DefaultTenant is the tenant of requests that name none.
const DefaultTenant = "anonymous"
