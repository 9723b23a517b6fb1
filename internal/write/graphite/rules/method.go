package rules

import (
	"math"
	"slices"
)

// Method computes an aggregate. The zero value is not a method.
type Method uint8

// The methods of carbon.
const (
	Sum Method = iota + 1
	Average
	Min
	Max
	Count
	P50
	P75
	P80
	P90
	P95
	P99
	P999
	methods
)

// methodNames are those of the file.
var methodNames = [methods]string{Sum: "sum", Average: "avg", Min: "min", Max: "max", Count: "count",
	P50: "p50", P75: "p75", P80: "p80", P90: "p90", P95: "p95", P99: "p99", P999: "p999"}

var ranks = [methods]float64{P50: 0.50, P75: 0.75, P80: 0.80, P90: 0.90, P95: 0.95, P99: 0.99, P999: 0.999}

// String returns the name that the file has for the method.
func (m Method) String() string {
	if !m.IsValid() {
		return "unknown"
	}
	return methodNames[m]
}

// IsValid reports whether there is a method of this number.
func (m Method) IsValid() bool { return m > 0 && m < methods }

// NeedsValues reports whether the method needs all values at the same time.
func (m Method) NeedsValues() bool { return m >= P50 }

// methodOf returns the method of a name, or 0.
func methodOf(name string) Method { return Method(max(0, slices.Index(methodNames[:], name))) }

// Percentile returns the percentile of values that the method stands for, as carbon interpolates it. It sorts
// the values.
func (m Method) Percentile(values []float64) float64 {
	slices.Sort(values)
	rank := ranks[m] * float64(len(values)-1)
	left, right := math.Floor(rank), math.Ceil(rank)
	if left == right {
		return values[int(left)]
	}
	// The conversions keep the compiler from fusing the operations, which would round once.
	return float64(values[int(left)]*(right-rank)) + float64(values[int(right)]*(rank-left))
}
