package plot

import "math"

// Bars is a chart of groups of bars: one group for each name, in it one bar for each series.
type Bars struct {
	Title, Unit string
	Names       []string
	Series      []Series
}

// Series has a bar in each group. A value that is not a number has none.
type Series struct {
	Name   string
	Values []float64
	// Least and Most, if set, are the ends of a whisker over each bar.
	Least, Most []float64
}

// SVG draws the chart.
func (c *Bars) SVG() string {
	var d drawing
	d.begin(c.Title)
	most := 0.0
	var legend []string
	for _, s := range c.Series {
		legend = append(legend, s.Name)
		for _, v := range append(append([]float64{}, s.Values...), s.Most...) {
			if !math.IsNaN(v) {
				most = math.Max(most, v)
			}
		}
	}
	d.legend(legend)
	y := d.valueAxis(c.Unit, ticks(most*1.05, 5), Number)
	group := areaWidth / math.Max(1, float64(len(c.Names)))
	bar := math.Min(60, group*0.8/math.Max(1, float64(len(c.Series))))
	for i, name := range c.Names {
		middle := left + group*(float64(i)+0.5)
		// Neighbouring names have different heights, so that long names fit.
		d.text(middle, top+areaHeight+18+14*float64(i%2), "middle", name)
		first := middle - bar*float64(len(c.Series))/2
		for j, s := range c.Series {
			v := s.Values[i]
			if math.IsNaN(v) {
				continue
			}
			x := first + bar*float64(j)
			d.put(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`, px(x+1), px(y(v)), px(bar-2), px(y(0)-y(v)), colour(j))
			label := y(v)
			if s.Most != nil && s.Most[i] > s.Least[i] {
				d.line(x+bar/2, y(s.Least[i]), x+bar/2, y(s.Most[i]), `stroke="#222"`)
				label = y(s.Most[i])
			}
			d.put(`<text x="%s" y="%s" text-anchor="middle" font-size="10">%s</text>`, px(x+bar/2), px(label-3), Number(three(v)))
		}
	}
	d.line(left, y(0), width-right, y(0), `stroke="#888"`)
	return d.end()
}

// three rounds to three significant figures.
func three(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
