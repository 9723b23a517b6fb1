package series

import (
	"fmt"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Aggregation makes one value of several, of which some may be missing. It does not keep the slice.
type Aggregation func(values []float64) float64

// aggregations by name, with the aliases of graphite-web.
var aggregations = map[string]Aggregation{
	"average": Average, "avg": Average, "avg_zero": averageZero, "median": Median, "sum": Sum, "total": Sum, "min": Min, "max": Max,
	"diff": diff, "stddev": Deviation, "count": Count, "range": span, "rangeOf": span, "multiply": multiply, "last": Last, "current": Last,
}

// AggregationNames are the names of aggregations, in the order of the function table.
func AggregationNames() []string {
	return []string{
		"average", "avg_zero", "median", "sum", "min", "max", "diff", "stddev", "count", "range", "multiply", "last",
		"rangeOf", "avg", "total", "current",
	}
}

// AggregationOf returns an aggregation by its name.
func AggregationOf(name string) (Aggregation, error) {
	if f := aggregations[name]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("%w: Unsupported aggregation function: %s", model.ErrInvalid, name)
}

// Sum returns the sum of the values present.
func Sum(values []float64) float64 {
	sum, n := sumOf(values)
	if n == 0 {
		return Null()
	}
	return sum
}

func sumOf(values []float64) (sum float64, n int) {
	for _, v := range values {
		if !IsNull(v) {
			sum += v
			n++
		}
	}
	return sum, n
}

// Average returns the mean of the values present.
func Average(values []float64) float64 {
	sum, n := sumOf(values)
	if n == 0 {
		return Null()
	}
	return sum / float64(n)
}

func averageZero(values []float64) float64 {
	if len(values) == 0 {
		return Null()
	}
	sum, _ := sumOf(values)
	return sum / float64(len(values))
}

// Median returns the middle of the values present, or the mean of the two in the middle.
func Median(values []float64) float64 {
	sorted := Present(make([]float64, 0, len(values)), values)
	if len(sorted) == 0 {
		return Null()
	}
	slices.Sort(sorted)
	mid := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[mid-1] + sorted[mid]) / 2
	}
	return sorted[mid]
}

// Min returns the least value present.
func Min(values []float64) float64 {
	least := Null()
	for _, v := range values {
		if !IsNull(v) && (IsNull(least) || v < least) {
			least = v
		}
	}
	return least
}

// Max returns the greatest value present.
func Max(values []float64) float64 {
	greatest := Null()
	for _, v := range values {
		if !IsNull(v) && (IsNull(greatest) || v > greatest) {
			greatest = v
		}
	}
	return greatest
}

// diff subtracts from the first value present the others. The order of the additions is graphite-web's.
func diff(values []float64) float64 {
	result, n := 0.0, 0
	for _, v := range values {
		switch {
		case IsNull(v):
			continue
		case n == 0:
			result += v
		default:
			result += -v
		}
		n++
	}
	if n == 0 {
		return Null()
	}
	return result
}

// Deviation returns the standard deviation of the values present, as of a whole population.
func Deviation(values []float64) float64 {
	sum, n := sumOf(values)
	if n == 0 {
		return Null()
	}
	mean, squares := sum/float64(n), 0.0
	for _, v := range values {
		if !IsNull(v) {
			squares += (v - mean) * (v - mean)
		}
	}
	return math.Sqrt(squares / float64(n))
}

// Count returns how many values are present.
func Count(values []float64) float64 {
	_, n := sumOf(values)
	return float64(n)
}

func span(values []float64) float64 {
	low, high := Min(values), Max(values)
	if IsNull(low) {
		return low
	}
	return high - low
}

// multiply is missing if any factor is.
func multiply(values []float64) float64 {
	if len(values) == 0 {
		return Null()
	}
	product := values[0]
	for i, v := range values {
		if IsNull(v) {
			return v
		}
		if i > 0 {
			product *= v
		}
	}
	return product
}

// Last returns the last value present.
func Last(values []float64) float64 {
	for i := len(values) - 1; i >= 0; i-- {
		if !IsNull(values[i]) {
			return values[i]
		}
	}
	return Null()
}

// Divide returns a/b, which is missing if b is 0 or one of them is missing.
func Divide(a, b float64) float64 {
	if IsNull(a) || IsNull(b) || b == 0 {
		return Null()
	}
	return a / b
}

// Enough reports whether the share of values present satisfies an xFilesFactor, and is not 0.
func Enough(present int, total, xff float64) bool {
	return present > 0 && total > 0 && float64(present)/total >= xff
}
