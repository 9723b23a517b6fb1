package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/terminal"
	"github.com/shaledb/shale/internal/terminal/plot"
)

// minPlotRows keeps a plot legible in a low window.
const minPlotRows = 8

// plotResult draws the series of a range query. What it leaves out, it says.
func plotResult(p *process, screen terminal.Screen, series []resultSeries, from, to time.Time, step time.Duration) error {
	chart := plot.Chart{
		From: from.UnixMilli(), To: to.UnixMilli(), Step: step.Milliseconds(),
		Width: screen.Width, Colour: screen.Colour, UTF8: screen.UTF8,
	}
	drawn, err := drawable(p, series)
	if err != nil {
		return err
	}
	if len(drawn) == 0 {
		_, err := fmt.Fprintln(p.stdout, "no series")
		return err
	}
	common := commonOf(metricsOf(series, drawn))
	for _, d := range drawn {
		d.Name = terminal.Selector(series[d.index].Metric, common.Labels)
		chart.Series = append(chart.Series, d.Series)
		for _, point := range d.Points { // a server may align the range to the step
			chart.From, chart.To = min(chart.From, point.At), max(chart.To, point.At)
		}
	}
	around := 5 + len(drawn) // the axis of time, the caption, the legend and the prompt
	if len(common.Labels) > 0 {
		around++
		if _, err := fmt.Fprintln(p.stdout, commonLabels(common)); err != nil {
			return err
		}
	}
	chart.Height = max(min(screen.Height-around, screen.Width/4), minPlotRows)
	return chart.Write(p.stdout)
}

// drawnSeries is a series of a result with its points as numbers.
type drawnSeries struct {
	plot.Series
	index int // in the result
	mean  float64
}

// drawable returns the series that a plot has colours for, in the order of the result.
func drawable(p *process, series []resultSeries) (drawn []drawnSeries, err error) {
	histograms, gaps := 0, 0
	for i := range series {
		if len(series[i].Histograms) > 0 {
			histograms++
		}
		if len(series[i].Values) == 0 {
			continue
		}
		d := drawnSeries{index: i}
		n := 0.0
		for j := range series[i].Values {
			point, err := series[i].Values[j].number()
			if err != nil {
				return nil, fmt.Errorf("reading the result: %w", err)
			}
			d.Points = append(d.Points, point)
			if math.IsNaN(point.Value) || math.IsInf(point.Value, 0) {
				gaps++
				continue
			}
			n++
			d.mean += (point.Value - d.mean) / n
		}
		drawn = append(drawn, d)
	}
	if histograms > 0 {
		p.note("%d of %d series left out: a plot cannot show native histograms; use histogram_quantile or -o table", histograms, len(series))
	}
	if gaps > 0 {
		p.note("the plot has gaps for NaN and infinite values (%d)", gaps)
	}
	if all := len(drawn); all > plot.MaxSeries {
		slices.SortStableFunc(drawn, func(a, b drawnSeries) int { return cmp.Compare(b.mean, a.mean) })
		drawn = drawn[:plot.MaxSeries]
		slices.SortFunc(drawn, func(a, b drawnSeries) int { return cmp.Compare(a.index, b.index) })
		p.note("%d of %d series are drawn, those with the highest averages; aggregate them with sum by (...), or use -o table to see all", plot.MaxSeries, all)
	}
	return drawn, nil
}

func metricsOf(series []resultSeries, drawn []drawnSeries) (metrics []map[string]string) {
	for _, d := range drawn {
		metrics = append(metrics, series[d.index].Metric)
	}
	return metrics
}

// number returns the pair as numbers.
func (p *point) number() (plot.Point, error) {
	seconds, err := p.seconds.Float64()
	if err != nil {
		return plot.Point{}, err
	}
	if math.Abs(seconds) > lastSecond {
		return plot.Point{}, fmt.Errorf("expected times of the years up to 9999, got %s seconds; use -o table or -o json", p.seconds)
	}
	value, err := strconv.ParseFloat(p.value, 64)
	return plot.Point{At: int64(math.Round(seconds * 1000)), Value: value}, err
}
