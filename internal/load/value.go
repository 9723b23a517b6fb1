package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// ValueModel says how the values of a series move from round to round.
type ValueModel uint8

// The value models.
const (
	// Int100 is an integer of 0..99, drawn anew for every sample.
	Int100 ValueModel = iota
	// Counter grows by about 1000 a round and never falls.
	Counter
	// Gauge wanders between 0 and 100 with three decimals.
	Gauge
	// Random is a float of [0, 1) with all 53 bits drawn: nothing compresses it.
	Random
)

var valueNames = [...]string{"int100", "counter", "gauge", "random"}

// String returns the name by which a model is chosen.
func (m ValueModel) String() string { return valueNames[m] }

// MarshalText returns the name of the model.
func (m ValueModel) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the name of a model. Its error is of class [model.ErrInvalid].
func (m *ValueModel) UnmarshalText(text []byte) error {
	for i, name := range valueNames {
		if string(text) == name {
			*m = ValueModel(i)
			return nil
		}
	}
	return fmt.Errorf("%w: value model %q: want one of %s", model.ErrInvalid, text, strings.Join(valueNames[:], ", "))
}

// The bases of the models that move along a line: a counter's round is worth counterStep at most, a gauge passes
// through a new random point every gaugeRounds rounds.
const (
	counterStep = 1000
	gaugeRounds = 16
	gaugeMax    = 100_000 // thousandths
)

// decimal returns the value as mantissa / 10^places with places 0 or 3, for the models that have few digits. The
// division is exact to the last bit, so the text and the float are the same number.
func (m ValueModel) decimal(seed, series, round uint64) (mantissa uint64, places int) {
	switch m {
	case Counter:
		// The random part stays below one step, so the sum never falls.
		start := draw(seed, series, math.MaxUint64) % 1_000_000
		return start + round*counterStep + draw(seed, series, round)%counterStep, 0
	case Gauge:
		at, part := round/gaugeRounds, round%gaugeRounds
		from, to := draw(seed, series, at)%gaugeMax, draw(seed, series, at+1)%gaugeMax
		return (from*(gaugeRounds-part) + to*part) / gaugeRounds, 3
	default:
		return draw(seed, series, round) % 100, 0
	}
}

// Bits returns the value of a sample as IEEE 754 bits.
func (m ValueModel) Bits(seed, series, round uint64) uint64 {
	if m == Random {
		return math.Float64bits(uniform(seed, series, round))
	}
	mantissa, places := m.decimal(seed, series, round)
	if places == 0 {
		return math.Float64bits(float64(mantissa))
	}
	return math.Float64bits(float64(mantissa) / 1000)
}

// AppendText appends the value of a sample as decimal text that parses to the same bits.
func (m ValueModel) AppendText(dst []byte, seed, series, round uint64) []byte {
	if m == Random {
		return strconv.AppendFloat(dst, uniform(seed, series, round), 'g', -1, 64)
	}
	mantissa, places := m.decimal(seed, series, round)
	if places == 0 {
		return strconv.AppendUint(dst, mantissa, 10)
	}
	dst = strconv.AppendUint(dst, mantissa/1000, 10)
	rest := mantissa % 1000
	return append(dst, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

func uniform(seed, series, round uint64) float64 {
	return float64(draw(seed, series, round)>>11) / (1 << 53)
}

// draw is the only source of randomness: a hash of its arguments, the finaliser of SplitMix64 over a sum in which
// each argument has an odd factor of its own, applied twice so that neighbours share nothing.
func draw(seed, series, round uint64) uint64 {
	x := spread(seed + series*0x9e3779b97f4a7c15)
	return spread(x + round*0xd1342543de82ef95)
}

func spread(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
