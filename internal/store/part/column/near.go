package column

import (
	"math"
	"math/bits"
)

// A counter of seconds is a sum of durations, each of which is a whole number of nanoseconds. But the sum is
// a double, and additions have rounded it many times. So it is not a decimal, but a few units in the last
// place (ulps) away from one, as 2.6199999999999997 is from 2.62. To the codecs of bits, all 52 bits of its
// mantissa look random. Stored as decimals and ulps, such sums take about half of what xor needs:
// TestSumsOfDecimals checks that.

// nearGain is the number of bits per double that the codec must be expected to save before it is tried.
const nearGain = 6

// nearExponent finds the number of decimal places with which integers and ulps together have the fewest bits.
// For doubles that are not near decimals that is about 53 bits, whatever the number of places.
func nearExponent(values []uint64) (k int, ok bool) {
	const sampled = 8
	step := max(1, len(values)/sampled)
	least := 53 - nearGain
	for e := 1; e <= maxExponent; e++ {
		var all, off uint64
		for i := 0; i < len(values); i += step {
			d, fits := nearest(values[i], e)
			if !fits {
				continue
			}
			ulps := int64(values[i] - decimalValue(d, e))
			all |= uint64(max(d, -d))
			off |= uint64(max(ulps, -ulps))
		}
		if n := bits.Len64(all) + bits.Len64(off); all != 0 && n < least {
			k, ok, least = e, true, n
		}
	}
	return k, ok
}

// nearest returns the integer i for which i / 10^k is nearest to a value. Infinities, NaNs and values beyond
// the integers that a double holds exactly have none.
func nearest(v uint64, k int) (int64, bool) {
	x := math.RoundToEven(math.Float64frombits(v) * pow10[k])
	if !(math.Abs(x) < exactInt) {
		return 0, false
	}
	return int64(x), true
}

// appendNear appends values as integers over 10^k and ulps. A value without an integer takes that of its
// predecessor, with any number of ulps.
func (c *ValueCoder) appendNear(dst []byte, values []uint64, k int) []byte {
	c.decimals, c.ulps = c.decimals[:0], c.ulps[:0]
	var last int64
	for _, v := range values {
		if d, ok := nearest(v, k); ok {
			last = d
		}
		c.decimals = append(c.decimals, last)
		c.ulps = append(c.ulps, int64(v-decimalValue(last, k)))
	}
	dst = c.Ints.Append(append(dst, valuesNear|byte(k)<<3), c.decimals)
	return c.Ints.Append(dst, c.ulps)
}

// near reads the output of appendNear.
func (d *ValueDecoder) near(dst []uint64, s *Scan, n, k int) []uint64 {
	if k > maxExponent {
		s.Fail()
		return dst
	}
	d.tmp = d.Ints.Append(d.tmp[:0], s, n)
	d.ulps = d.Ints.Append(d.ulps[:0], s, n)
	if s.Bad {
		return dst
	}
	at := len(dst)
	dst = Grow(dst, n)
	out := dst[at:]
	for i, x := range d.tmp {
		out[i] = decimalValue(x, k) + uint64(d.ulps[i])
	}
	return dst
}
