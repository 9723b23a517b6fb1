package plot

import (
	"math"
	"strings"
)

// Lines is a chart of curves over time.
type Lines struct {
	Title string
	// Unit labels the axis of values.
	Unit   string
	Curves []Curve
	// Marks are moments with a name, in seconds. Bound, unless 0, is a named limit for the curves.
	Marks     []Mark
	Bound     float64
	BoundName string
}

// Curve is a named line of points: seconds and values, in the order of time.
type Curve struct {
	Name   string
	Points [][2]float64
}

// Mark is a moment.
type Mark struct {
	At   float64
	Name string
}

// most points of a curve: more than one a pixel shows nothing.
const mostPoints = areaWidth

// SVG draws the chart.
func (c *Lines) SVG() string {
	var d drawing
	d.begin(c.Title)
	most, end := c.Bound, 0.0
	var names []string
	for _, curve := range c.Curves {
		names = append(names, curve.Name)
		for _, p := range curve.Points {
			most, end = math.Max(most, p[1]), math.Max(end, p[0])
		}
	}
	d.legend(names)
	y := d.valueAxis(c.Unit, ticks(most, 5), Number)
	x := d.timeAxis(end)
	for _, m := range c.Marks {
		d.line(x(m.At), top, x(m.At), top+areaHeight, `stroke="#888" stroke-dasharray="2 3"`)
		d.text(x(m.At)+3, top+areaHeight-4, "start", m.Name)
	}
	if c.Bound > 0 {
		d.line(left, y(c.Bound), width-right, y(c.Bound), `stroke="#a00" stroke-dasharray="6 4"`)
		d.text(width-right-4, y(c.Bound)-5, "end", c.BoundName)
	}
	for i, curve := range c.Curves {
		var points []string
		for _, p := range thin(curve.Points, mostPoints) {
			points = append(points, px(x(p[0]))+","+px(y(p[1])))
		}
		d.put(`<polyline fill="none" stroke="%s" stroke-width="1.6" points="%s"/>`, colour(i), strings.Join(points, " "))
	}
	return d.end()
}

// timeAxis draws the axis of time, in seconds to days, and returns where a second lies.
func (d *drawing) timeAxis(end float64) func(s float64) float64 {
	unit, size := "seconds", 1.0
	switch {
	case end > 3*86400:
		unit, size = "days", 86400
	case end > 3*3600:
		unit, size = "hours", 3600
	case end > 3*60:
		unit, size = "minutes", 60
	}
	if end <= 0 {
		end = 1
	}
	at := func(s float64) float64 { return left + areaWidth*s/end }
	for _, v := range ticks(end/size, 8) {
		if v*size > end*1.001 {
			break
		}
		d.line(at(v*size), top+areaHeight, at(v*size), top+areaHeight+5, `stroke="#888"`)
		d.text(at(v*size), top+areaHeight+18, "middle", short(v))
	}
	d.line(left, top+areaHeight, width-right, top+areaHeight, `stroke="#888"`)
	d.text(left+areaWidth/2, height-8, "middle", unit)
	return at
}

// thin keeps at most n points: the highest of neighbours that fall together, so that no peak is lost.
func thin(points [][2]float64, n int) [][2]float64 {
	if len(points) <= n {
		return points
	}
	kept := make([][2]float64, 0, n)
	for i := range n {
		group := points[i*len(points)/n : (i+1)*len(points)/n]
		top := group[0]
		for _, p := range group {
			if p[1] > top[1] {
				top = p
			}
		}
		kept = append(kept, top)
	}
	return kept
}
