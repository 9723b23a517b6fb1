package plot

import (
	"math"
	"strings"
)

// Sizes is a chart of curves over sizes in bytes, on a logarithmic axis. The points of a curve are sizes and
// values.
type Sizes struct {
	Title string
	// Unit labels the axis of values.
	Unit   string
	Curves []Curve
}

// SVG draws the chart.
func (c *Sizes) SVG() string {
	var d drawing
	d.begin(c.Title)
	most, low, high := 0.0, math.Inf(1), 0.0
	var names []string
	for _, curve := range c.Curves {
		names = append(names, curve.Name)
		for _, p := range curve.Points {
			most, low, high = math.Max(most, p[1]), math.Min(low, p[0]), math.Max(high, p[0])
		}
	}
	d.legend(names)
	y := d.valueAxis(c.Unit, ticks(most, 5), Number)
	x := d.sizeAxis(low, high)
	for i, curve := range c.Curves {
		var points []string
		for _, p := range curve.Points {
			points = append(points, px(x(p[0]))+","+px(y(p[1])))
			d.put(`<circle cx="%s" cy="%s" r="3" fill="%s"/>`, px(x(p[0])), px(y(p[1])), colour(i))
		}
		d.put(`<polyline fill="none" stroke="%s" stroke-width="1.6"%s points="%s"/>`, colour(i), dash(i), strings.Join(points, " "))
	}
	return d.end()
}

// sizeAxis draws the axis of sizes and returns where a size lies.
func (d *drawing) sizeAxis(low, high float64) func(bytes float64) float64 {
	if !(low > 0) || low >= high {
		low, high = math.Max(high, 1)/2, math.Max(high, 1)*2
	}
	at := func(v float64) float64 { return left + areaWidth*math.Log(v/low)/math.Log(high/low) }
	for power := math.Floor(math.Log10(low)); math.Pow(10, power) <= high; power++ {
		for _, f := range []float64{1, 2, 5} {
			v := f * math.Pow(10, power)
			if v < low*0.999 || v > high*1.001 {
				continue
			}
			d.line(at(v), top+areaHeight, at(v), top+areaHeight+5, `stroke="#888"`)
			d.text(at(v), top+areaHeight+18, "middle", Bytes(v))
		}
	}
	d.line(left, top+areaHeight, width-right, top+areaHeight, `stroke="#888"`)
	d.text(left+areaWidth/2, height-8, "middle", "size of the cache")
	return at
}

// Bytes writes a number of bytes with a prefix of thousands.
func Bytes(v float64) string {
	for _, p := range []struct {
		from float64
		name string
	}{{1e12, " TB"}, {1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}} {
		if v >= p.from {
			return short(v/p.from) + p.name
		}
	}
	return short(v) + " B"
}
