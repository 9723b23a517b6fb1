package series

import (
	"fmt"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Percentile returns the value at rank n/100*(count+1) of the values present. Between two ranks it takes
// the higher one, or interpolates.
func Percentile(values []float64, n float64, interpolate bool) (float64, error) {
	sorted := Present(make([]float64, 0, len(values)), values)
	if len(sorted) == 0 {
		return Null(), nil
	}
	slices.Sort(sorted)
	exact := n / 100 * float64(len(sorted)+1)
	if !(exact >= 0 && exact <= float64(len(sorted)+1)) {
		return 0, fmt.Errorf("%w: expected a percentile of at most 100, found %s", model.ErrInvalid, General(n))
	}
	rank := int(exact)
	fraction := exact - float64(rank)
	if !interpolate {
		rank += int(math.Ceil(fraction))
	}
	v := sorted[max(0, min(rank, len(sorted))-1)]
	if interpolate && rank < len(sorted) {
		v += fraction * (sorted[rank] - v)
	}
	return v, nil
}
