package calculate

import (
	"math"
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// The smoothing of Holt and Winters, as graphite-web sets it.
const (
	alpha = 0.1
	beta  = 0.0035
	gamma = 0.1
)

// forecast computes predictions and deviations of a series with a season of some points. A missing value
// breaks the chain: the next value begins it again.
func forecast(s *series.Series, season int) (predictions, deviations []float64) {
	n := len(s.Values)
	seasonals := make([]float64, n)
	predictions, deviations = make([]float64, n), make([]float64, n)
	last := func(of []float64, i int) float64 {
		if i >= season {
			return of[i-season]
		}
		return 0
	}
	intercept, slope, next := series.Null(), 0.0, series.Null()
	for i, actual := range s.Values {
		if series.IsNull(actual) {
			intercept, slope = actual, 0
			predictions[i], next = next, series.Null()
			continue
		}
		prediction := next
		if i == 0 {
			prediction = actual
		}
		if series.IsNull(intercept) {
			intercept = actual
		}
		lastIntercept, lastSlope, lastSeasonal := intercept, slope, last(seasonals, i)
		intercept = alpha*(actual-lastSeasonal) + (1-alpha)*(lastIntercept+lastSlope)
		slope = beta*(intercept-lastIntercept) + (1-beta)*lastSlope
		seasonals[i] = gamma*(actual-intercept) + (1-gamma)*lastSeasonal
		next = intercept + slope + last(seasonals, i+1)
		predictions[i] = prediction
		if series.IsNull(prediction) {
			prediction = 0
		}
		deviations[i] = gamma*math.Abs(actual-prediction) + (1-gamma)*last(deviations, i)
	}
	return predictions, deviations
}

// analysis is a series with its forecast, cut to the window of the graph.
type analysis struct {
	source                  *series.Series // over the window and the time before it
	start                   int64
	predictions, deviations []float64
}

// analyse evaluates the argument from a time before the window, so that the forecast settles, and forecasts
// it. The interval before the window and the season are the arguments from the i-th.
func analyse(c *function.Call, i int) ([]analysis, error) {
	preview, err := attime.ParseOffset(c.Text(i))
	if err != nil || preview < 0 {
		return nil, c.Errorf("expected bootstrapInterval to be an interval without a minus, found %q", c.Text(i))
	}
	season, err := attime.ParseOffset(c.Text(i + 1))
	if err != nil {
		return nil, err
	}
	list, err := c.Again(c, c.From-preview, c.Until)
	if err != nil {
		return nil, err
	}
	out := make([]analysis, 0, len(list))
	for _, s := range list {
		if season/s.Step < 2 {
			return nil, c.Errorf("expected a seasonality of at least two steps of %d s, found %q", s.Step, c.Text(i+1))
		}
		if err := c.Check(8 * len(s.Values)); err != nil {
			return nil, err
		}
		a := analysis{source: s, start: s.Start + preview}
		a.predictions, a.deviations = forecast(s, int(season/s.Step))
		skip := min(int(preview/s.Step), len(s.Values))
		a.predictions, a.deviations = a.predictions[skip:], a.deviations[skip:]
		s.Tags["holtWintersForecast"], s.Tags["holtWintersDeviation"] = "1", "1"
		out = append(out, a)
	}
	return out, nil
}

// made returns a series over the window of an analysis. Its tags are those of the source.
func (a *analysis) made(name string, values []float64) *series.Series {
	d := series.New(name, a.start, a.source.End, a.source.Step, values, a.source.XFF)
	d.Tags = a.source.Tags
	return d
}

func holtWintersForecast(c *function.Call) (any, error) {
	all, err := analyse(c, 1)
	if err != nil {
		return nil, err
	}
	out := make(series.List, 0, len(all))
	for _, a := range all {
		out = append(out, a.made("holtWintersForecast("+a.source.Name+")", a.predictions))
	}
	return out, nil
}

// bands returns for each series a lower and an upper bound: the forecast minus and plus some deviations.
func bands(c *function.Call) (series.List, error) {
	all, err := analyse(c, 2)
	if err != nil {
		return nil, err
	}
	delta := c.Number(1)
	out := make(series.List, 0, 2*len(all))
	for _, a := range all {
		low, high := series.Nulls(len(a.predictions)), series.Nulls(len(a.predictions))
		for i, p := range a.predictions {
			if !series.IsNull(p) {
				low[i], high[i] = p-delta*a.deviations[i], p+delta*a.deviations[i]
			}
		}
		a.source.Tags["holtWintersConfidenceUpper"], a.source.Tags["holtWintersConfidenceLower"] = "1", "1"
		lower := a.made("holtWintersConfidenceLower("+a.source.Name+")", low)
		upper := a.made("holtWintersConfidenceUpper("+a.source.Name+")", high)
		lower.Path, upper.Path = a.source.Path, a.source.Path
		out = append(out, lower, upper)
	}
	return out, nil
}

func confidenceBands(c *function.Call) (any, error) { return bands(c) }

// aberration shows by how much values leave the bands.
func aberration(c *function.Call) (any, error) {
	made, err := bands(c)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*series.Series, len(made))
	for _, s := range made {
		byName[s.Name] = s
	}
	return function.Each(func(_ *function.Call, s *series.Series) (*series.Series, error) {
		lower, upper := byName["holtWintersConfidenceLower("+s.Name+")"], byName["holtWintersConfidenceUpper("+s.Name+")"]
		out := make([]float64, len(s.Values))
		for i, v := range s.Values {
			switch {
			case series.IsNull(v) || lower == nil || upper == nil || i >= len(upper.Values):
			case !series.IsNull(upper.Values[i]) && v > upper.Values[i]:
				out[i] = v - upper.Values[i]
			case !series.IsNull(lower.Values[i]) && v < lower.Values[i]:
				out[i] = v - lower.Values[i]
			}
		}
		s.Tags["holtWintersAberration"] = "1"
		d := series.New("holtWintersAberration("+s.Name+")", s.Start, s.End, s.Step, out, s.XFF)
		d.Tags = s.Tags
		return d, nil
	})(c)
}

// confidenceArea draws the area between the bands of one series.
func confidenceArea(c *function.Call) (any, error) {
	made, err := bands(c)
	if err != nil {
		return nil, err
	}
	if err := function.Between(c, made); err != nil {
		return nil, err
	}
	for _, s := range made {
		delete(s.Tags, "areaBetween")
		s.Tags["holtWintersConfidenceArea"] = "1"
		s.Rename(strings.ReplaceAll(s.Name, "areaBetween", "holtWintersConfidenceArea"))
	}
	return made, nil
}
