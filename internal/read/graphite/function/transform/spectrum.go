package transform

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

const (
	// maxSpectrum bounds the values of a series that has a spectrum. The library fails for lengths with more
	// than 13 prime factors, of which the least is beyond this.
	maxSpectrum = 1 << 20
	// maxSteps bounds the work of one transform, which is the length times its greatest prime factor.
	maxSteps = 1 << 31
)

// transformable takes the memory and the work of one transform from the request, or refuses it.
func transformable(c *function.Call, n int) error {
	if n > maxSpectrum {
		return c.Errorf("expected at most %d values of a series, found %d", maxSpectrum, n)
	}
	greatest := 1
	for rest, p := n, 2; rest > 1; p++ {
		if p*p > rest {
			p = rest
		}
		for rest%p == 0 {
			greatest, rest = max(greatest, p), rest/p
		}
	}
	if steps := n * greatest; steps > maxSteps {
		return c.Errorf("a series of %d values would take %d steps, more than %d, as %d is a prime factor: choose another window", n, steps, maxSteps, greatest)
	}
	if err := c.Check(n * greatest); err != nil {
		return err
	}
	return c.Charge(c, 10*int64(n))
}

// spectrum shows the discrete Fourier transform of each series: the magnitude of each frequency, its phase,
// or both as two series. Values lie where those of the series were. A series with a gap has no spectrum.
func spectrum(c *function.Call) (any, error) {
	var out series.List
	for _, s := range c.List(0) {
		if err := transformable(c, len(s.Values)); err != nil {
			return nil, err
		}
		var bins []complex128
		if series.Count(s.Values) == float64(len(s.Values)) && len(s.Values) > 0 {
			bins = fourier.NewCmplxFFT(len(s.Values)).Coefficients(nil, complexes(s.Values, nil))
		}
		part := func(name string, f func(complex128) float64) {
			values := series.Nulls(len(s.Values))
			for i, b := range bins {
				values[i] = f(b)
			}
			out = append(out, s.Derive("fft("+s.Name+","+name+")", values))
		}
		if mode := c.Text(1); mode != "phase" {
			part("abs", cmplx.Abs)
		}
		if mode := c.Text(1); mode != "abs" {
			part("phase", cmplx.Phase)
		}
	}
	return out, nil
}

// inverseSpectrum makes series of the magnitudes of frequencies, and of their phases if there are any.
// Without phases, a series with a gap has no result.
func inverseSpectrum(c *function.Call) (any, error) {
	phases := c.List(1)
	var out series.List
	for i, s := range c.List(0) {
		if err := transformable(c, len(s.Values)); err != nil {
			return nil, err
		}
		name, values := "ifft("+s.Name+")", []float64(nil)
		if i < len(phases) {
			name, values = "ifft("+s.Name+","+phases[i].Name+")", phases[i].Values
			if len(values) != len(s.Values) {
				return nil, c.Errorf("%s and %s have different steps", s.Name, phases[i].Name)
			}
		}
		n := len(s.Values)
		made := series.Nulls(n)
		if n > 0 && (values != nil || series.Count(s.Values) == float64(n)) {
			for i, v := range fourier.NewCmplxFFT(n).Sequence(nil, complexes(s.Values, values)) {
				made[i] = cmplx.Abs(v) / float64(n)
			}
		}
		out = append(out, s.Derive(name, made))
	}
	return out, nil
}

// complexes returns numbers of some magnitudes and phases. Missing ones are 0.
func complexes(magnitudes, phases []float64) []complex128 {
	out := make([]complex128, len(magnitudes))
	for i, v := range magnitudes {
		switch {
		case series.IsNull(v):
		case phases == nil || series.IsNull(phases[i]):
			out[i] = complex(v, 0)
		default:
			out[i] = cmplx.Rect(v, phases[i])
		}
	}
	return out
}

// lowPass leaves out the middle of a spectrum, which has the high frequencies.
func lowPass(c *function.Call, s *series.Series) (*series.Series, error) {
	percent := c.Number(1)
	if !(percent >= 0 && percent <= 100) {
		return nil, c.Errorf("cutPercent must be from 0 to 100, found %s", series.General(percent))
	}
	low := int(percent / 200 * float64(len(s.Values)))
	values := series.Nulls(len(s.Values))
	copy(values[:low], s.Values)
	copy(values[len(values)-low:], s.Values[len(values)-low:])
	return s.Derive("lowPass("+s.Name+","+shortest(percent)+")", values), nil
}

func shortest(v float64) string {
	if v == math.Trunc(v) {
		return series.Text(int64(v))
	}
	return series.Shortest(v)
}
