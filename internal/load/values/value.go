package values

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/load/random"
	"github.com/shaledb/shale/internal/model"
)

// ValueModel says how the values of a series change.
type ValueModel uint8

// The value models.
const (
	// Int100 is an integer of 0..99, drawn for every sample.
	Int100 ValueModel = iota
	// Counter grows by about 1000 a round and never falls.
	Counter
	// Gauge wanders between 0 and 100 with three decimals, in straight lines.
	Gauge
	// Random is a float of [0, 1) with all 53 bits drawn: nothing compresses it.
	Random
	// Walk is a random walk with three decimals: it moves on every scale.
	Walk
	// Const is one integer of 0..99 for all of a series.
	Const
	// HistogramInt is a native histogram that counts in integers; one metric in four is a gauge histogram.
	HistogramInt
	// HistogramFloat is a native histogram with fractional counts.
	HistogramFloat
	// HistogramCustom is a native histogram with custom bounds, as made from a classic one.
	HistogramCustom
)

var valueNames = [...]string{"int100", "counter", "gauge", "random", "walk", "const", "histogram", "histogram-float", "histogram-custom"}

// String returns the name by which a model is chosen.
func (m ValueModel) String() string { return valueNames[m] }

// MarshalText returns the name of the model.
func (m ValueModel) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the name of a model; float is another name of random. Its error is of class
// [model.ErrInvalid].
func (m *ValueModel) UnmarshalText(text []byte) error {
	if string(text) == "float" {
		text = []byte(Random.String())
	}
	for i, name := range valueNames {
		if string(text) == name {
			*m = ValueModel(i)
			return nil
		}
	}
	return fmt.Errorf("%w: value model %q: want one of %s", model.ErrInvalid, text, strings.Join(valueNames[:], ", "))
}

// Histogram reports whether the values are native histograms.
func (m ValueModel) Histogram() bool { return m >= HistogramInt }

// Instant is a moment in the life of a series. Together with the number of the series it determines the
// value.
type Instant struct {
	Seed uint64 // of the series' cycle
	Tick uint64
	// Fresh is set if tick 0 is the birth of the series, and not just the beginning of the load.
	Fresh bool
}

// Parameters of two models: a round adds at most counterStep to a counter, and a gauge passes through a new
// random point every gaugeRounds rounds.
const (
	CounterStep = 1000
	gaugeRounds = 16
	gaugeMax    = 100_000 // thousandths
)

// decimal returns the value as mantissa / 10^places with places 0 or 3, for the models that have few digits.
// The division is exact to the last bit, so the text and the float are the same number.
func (m ValueModel) decimal(at *Instant, series uint64) (mantissa uint64, places int) {
	switch m {
	case Counter:
		// The random part stays below one step, so the sum never falls.
		start := uint64(0)
		if !at.Fresh {
			start = random.Draw(at.Seed, series, math.MaxUint64) % 1_000_000
		}
		return start + at.Tick*CounterStep + random.Draw(at.Seed, series, at.Tick)%CounterStep, 0
	case Gauge:
		return line(at.Seed, series, at.Tick, gaugeRounds, gaugeMax), 3
	case Walk:
		sum := uint64(0)
		for _, s := range scales {
			sum += line(at.Seed^s.ticks, series, at.Tick, s.ticks, s.height)
		}
		return sum, 3
	case Const:
		return random.Draw(at.Seed, series, math.MaxUint64) % 100, 0
	default:
		return random.Draw(at.Seed, series, at.Tick) % 100, 0
	}
}

// line passes through a random point below height at regular ticks, and is straight in between.
func line(seed, series, tick, ticks, height uint64) uint64 {
	at, part := tick/ticks, tick%ticks
	from, to := random.Draw(seed, series, at)%height, random.Draw(seed, series, at+1)%height
	return (from*(ticks-part) + to*part) / ticks
}

// scales are the parts of a random walk, in thousandths: in four times the time it strays twice as far.
var scales = [...]struct{ ticks, height uint64 }{{1, 1000}, {4, 2000}, {16, 4000}, {64, 8000}, {256, 16_000}, {1024, 32_000}}

// Bits returns the value of a sample as IEEE 754 bits.
func (m ValueModel) Bits(at *Instant, series uint64) uint64 {
	if m == Random {
		return math.Float64bits(random.Uniform(at.Seed, series, at.Tick))
	}
	mantissa, places := m.decimal(at, series)
	if places == 0 {
		return math.Float64bits(float64(mantissa))
	}
	return math.Float64bits(float64(mantissa) / 1000)
}

// AppendText appends the value of a sample as decimal text that parses to the same bits.
func (m ValueModel) AppendText(dst []byte, at *Instant, series uint64) []byte {
	if m == Random {
		return strconv.AppendFloat(dst, random.Uniform(at.Seed, series, at.Tick), 'g', -1, 64)
	}
	mantissa, places := m.decimal(at, series)
	if places == 0 {
		return strconv.AppendUint(dst, mantissa, 10)
	}
	dst = strconv.AppendUint(dst, mantissa/1000, 10)
	rest := mantissa % 1000
	return append(dst, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// Cumulative reports whether the values count from a start time.
func (m ValueModel) Cumulative() bool { return m == Counter || m.Histogram() }
