package column

import "math"

// maxExponent is the most decimal places that are tried. Doubles hold 15 to 17 digits; one with more places
// was hardly written as a decimal.
const maxExponent = 15

// pow10 are exact as doubles.
var pow10 = [maxExponent + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// exactInt is the bound below which every integer is a double, so that dividing it by a power of ten rounds
// once.
const exactInt = 1 << 53

// decimalOf returns the integer i for which i / 10^k has exactly the given bits. Minus zero, NaNs and
// infinities have none, since the bits are compared, not the numbers.
func decimalOf(v uint64, k int) (int64, bool) {
	f := math.Float64frombits(v)
	if k == 0 {
		i := int64(f)
		return i, math.Float64bits(float64(i)) == v
	}
	i := int64(math.RoundToEven(f * pow10[k]))
	return i, i > -exactInt && i < exactInt && math.Float64bits(float64(i)/pow10[k]) == v
}

// decimalValue is the inverse of decimalOf.
func decimalValue(i int64, k int) uint64 {
	if k == 0 {
		return math.Float64bits(float64(i))
	}
	return math.Float64bits(float64(i) / pow10[k])
}

// exponentOf finds the fewest decimal places that suffice for a sample of the values. It skips values that
// are not decimals: markers and NaNs are exceptions.
func exponentOf(values []uint64) (k int, ok bool) {
	const sampled = 24
	step := max(1, len(values)/sampled)
	found := 0
	for i := 0; i < len(values); i += step {
		e := k
		for e <= maxExponent {
			if _, fits := decimalOf(values[i], e); fits {
				break
			}
			e++
		}
		if e <= maxExponent {
			k = e
			found++
		}
	}
	return k, found > 0
}

// toDecimals converts values to integers over 10^k. A value that is not a decimal takes its predecessor's
// integer, which packs well, and its index goes to exceptions. toDecimals gives up if there are too many.
func toDecimals(ints []int64, exceptions []uint32, values []uint64, k int) ([]int64, []uint32, bool) {
	most := len(values)/8 + 1
	var last int64
	for i, v := range values {
		d, ok := decimalOf(v, k)
		if !ok {
			if len(exceptions) >= most {
				return ints, exceptions, false
			}
			exceptions = append(exceptions, uint32(i))
			d = last
		}
		last = d
		ints = append(ints, d)
	}
	return ints, exceptions, true
}
