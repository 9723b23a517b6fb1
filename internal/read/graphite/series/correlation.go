package series

import "math"

// Correlation returns Pearson's correlation of two slices of values, from -1 to 1. Places at which either has
// none do not count. It is missing for fewer than two places and where either is constant.
func Correlation(a, b []float64) float64 {
	var meanA, meanB, n float64
	for i := range min(len(a), len(b)) {
		if !IsNull(a[i]) && !IsNull(b[i]) {
			meanA += a[i]
			meanB += b[i]
			n++
		}
	}
	meanA, meanB = meanA/n, meanB/n
	var both, squaresA, squaresB float64
	for i := range min(len(a), len(b)) {
		if !IsNull(a[i]) && !IsNull(b[i]) {
			both += (a[i] - meanA) * (b[i] - meanB)
			squaresA += (a[i] - meanA) * (a[i] - meanA)
			squaresB += (b[i] - meanB) * (b[i] - meanB)
		}
	}
	if r := both / (math.Sqrt(squaresA) * math.Sqrt(squaresB)); !math.IsNaN(r) {
		return r
	}
	return Null()
}
