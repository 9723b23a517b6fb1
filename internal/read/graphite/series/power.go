package series

import "math"

// Power returns a to the power of b, which is missing if one of them is, or if the result is not a finite
// real number.
func Power(a, b float64) float64 {
	if IsNull(a) || IsNull(b) {
		return Null()
	}
	v := Pow(a, b)
	finite := !math.IsInf(a, 0) && !math.IsInf(b, 0)
	if finite && math.IsInf(v, 0) || math.IsNaN(v) && !math.IsNaN(a) && !math.IsNaN(b) {
		return Null()
	}
	return v
}

// mostWhole bounds the exponents for which Pow multiplies. Nearly all powers beyond it are 0 or infinite.
const mostWhole = 1 << 16

// Pow is math.Pow with the accuracy of the C library where the exponent is whole. math.Pow rounds after each
// multiplication, so that its error grows with the exponent: names show it, since they have all digits of a
// value. Here products have twice the digits. Of other exponents the fraction is left to math.Pow, and the
// result may differ by 4 units in the last digit.
func Pow(a, b float64) float64 {
	v := math.Pow(a, b)
	whole, fraction := math.Modf(b)
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) || !(math.Abs(whole) >= 2 && math.Abs(whole) <= mostWhole) {
		return v
	}
	result, square := double{1, 0}, double{a, 0}
	if b < 0 {
		square = square.inverse() // the result may be finite although that of -b is too small
	}
	for n := int(math.Abs(whole)); ; square = square.times(square) {
		if n&1 == 1 {
			result = result.times(square)
		}
		if n >>= 1; n == 0 {
			break
		}
	}
	if fraction != 0 {
		result = result.times(double{math.Pow(a, fraction), 0})
	}
	if exact := result.high + result.low; exact != 0 && !math.IsInf(exact, 0) && !math.IsNaN(exact) {
		return exact
	}
	return v
}

// double is the sum of two numbers, of which low is less than the last digit of high: the arithmetic of
// T. J. Dekker, "A floating-point technique for extending the available precision" (1971).
type double struct{ high, low float64 }

func (x double) times(y double) double {
	product := x.high * y.high
	rest := math.FMA(x.high, y.high, -product) + (x.high*y.low + x.low*y.high)
	return sum(product, rest)
}

func (x double) inverse() double {
	q := 1 / x.high
	return sum(q, q*(math.FMA(-q, x.high, 1)-q*x.low))
}

// sum returns the sum of two numbers, of which the first is the greater one.
func sum(a, b float64) double {
	high := a + b
	return double{high, b - (high - a)}
}
