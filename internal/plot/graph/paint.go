package graph

import (
	"context"
	"image/color"
	"math"
)

// titles writes the titles and takes their place off the area.
func (p *painter) titles() {
	a := &p.area
	if p.Title != "" {
		size := p.FontSize * 1.3
		a.top += size
		p.text(point{float64(p.Width) / 2, a.top}, middle, size, true, false, p.Foreground, p.Title)
		a.top += size * 0.8
	}
	if p.ValueTitle != "" {
		a.left += p.FontSize
		p.text(point{a.left, float64(p.Height) / 2}, middle, p.FontSize*1.1, false, true, p.Foreground, p.ValueTitle)
		a.left += p.FontSize * 0.8
	}
	if p.SecondTitle != "" && p.hasSecond() {
		p.text(point{a.right, float64(p.Height) / 2}, middle, p.FontSize*1.1, false, true, p.Foreground, p.SecondTitle)
		a.right -= p.FontSize * 1.8
	}
}

func (p *painter) hasSecond() bool {
	for i := range p.Curves {
		if p.Curves[i].Second {
			return true
		}
	}
	return false
}

// legend writes the names below the graph, in columns as wide as the longest name. It leaves half of the
// height to the curves, and says how many names it leaves out.
func (p *painter) legend() {
	size := p.FontSize
	box, line := size, size*1.5
	wide := 0.0
	for i := range p.Curves {
		wide = max(wide, p.fonts.width(p.Curves[i].Name, size, false))
	}
	wide += box*1.5 + size
	columns := max(1, int(p.area.width()/wide))
	rows := (len(p.Curves) + columns - 1) / columns
	rows = min(rows, int(p.area.height()/2/line))
	if rows == 0 {
		return
	}
	top := p.area.bottom - float64(rows)*line
	shown := min(len(p.Curves), rows*columns)
	more := ""
	if shown < len(p.Curves) {
		shown--
		more = "and " + itoa(len(p.Curves)-shown) + " more"
	}
	for i := range shown {
		x, y := p.area.left+float64(i%columns)*wide, top+float64(i/columns)*line
		p.rectangle(x, y+line-box, box, box*0.9, p.Foreground)
		p.rectangle(x+1, y+line-box+1, box-2, box*0.9-2, p.colors[i])
		p.text(point{x + box*1.5, y + line - box*0.2}, begin, size, false, false, p.Foreground, p.Curves[i].Name)
	}
	if more != "" {
		x, y := p.area.left+float64(shown%columns)*wide, top+float64(shown/columns)*line
		p.text(point{x + box*1.5, y + line - box*0.2}, begin, size, false, false, p.Foreground, more)
	}
	p.area.bottom = top - size*0.3
}

// axes chooses the scales, writes their labels, and draws the grid.
func (p *painter) axes() {
	size := p.FontSize
	labels := !p.HideAxes
	if labels && !p.HideTimes {
		p.area.bottom -= size * 1.6
	}
	n := max(1, int(p.area.height()/(size*3)))
	p.left, p.right = p.scale(false, p.Min, p.Max, n), p.scale(true, math.NaN(), math.NaN(), n)
	if labels && !p.HideValues {
		p.area.left += p.labelWidth(&p.left)
		if p.right.used {
			p.area.right -= p.labelWidth(&p.right)
		}
	}
	if p.area.width() < 10 || p.area.height() < 10 || !labels {
		return
	}
	faint := p.Grid
	for _, v := range p.left.ticks() {
		y := p.y(&p.left, v)
		if !p.HideGrid {
			p.line([]point{{p.area.left, y}, {p.area.right, y}}, 0.6, 0, faint)
		}
		if !p.HideValues {
			p.text(point{p.area.left - size*0.5, y + size*0.35}, end, size, false, false, p.Foreground, p.left.label(v))
		}
	}
	if p.right.used && !p.HideValues {
		for _, v := range p.right.ticks() {
			p.text(point{p.area.right + size*0.5, p.y(&p.right, v) + size*0.35}, begin, size, false, false, p.Foreground, p.right.label(v))
		}
	}
	wide := p.fonts.width("Mon 00:00", size, false) * 1.3
	for _, t := range timeTicks(p.from, p.until, p.Zone, int(p.area.width()/wide)) {
		x := p.x(float64(t.at))
		if !p.HideGrid {
			p.line([]point{{x, p.area.top}, {x, p.area.bottom}}, 0.6, 0, faint)
		}
		if !p.HideTimes {
			half := p.fonts.width(t.label, size, false) / 2
			at := max(half, min(float64(p.Width)-half-1, x)) // the label of a tick at the edge stays inside
			p.text(point{at, p.area.bottom + size*1.4}, middle, size, false, false, p.Foreground, t.label)
		}
	}
	p.line([]point{{p.area.left, p.area.top}, {p.area.left, p.area.bottom}, {p.area.right, p.area.bottom}}, 1, 0, p.Foreground)
}

func (p *painter) labelWidth(a *axis) float64 {
	wide := 0.0
	for _, v := range a.ticks() {
		wide = max(wide, p.fonts.width(a.label(v), p.FontSize, false))
	}
	return wide + p.FontSize*0.7
}

// scale returns the axis of one side. An area stands on 0 if that is within reach.
func (p *painter) scale(second bool, fixedMin, fixedMax float64, n int) axis {
	lo, hi, used := math.Inf(1), math.Inf(-1), false
	for i := range p.Curves {
		c := &p.Curves[i]
		if c.Second != second {
			continue
		}
		used = true
		if c.Infinite {
			continue
		}
		if c.Area && p.lower[i] == nil && len(c.Values) > 0 {
			lo, hi = min(lo, 0), max(hi, 0)
		}
		for _, v := range p.upper[i] {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if lo > hi {
		lo, hi = 0, 1
	}
	a := newAxis(lo, hi, fixedMin, fixedMax, n)
	a.used = used
	return a
}

// y returns where a value lies, at most a little outside of the area.
func (p *painter) y(a *axis, v float64) float64 {
	share := max(-1, min(2, a.share(v)))
	return p.area.bottom - p.area.height()*share
}

// curves draws the areas, and above them the lines.
func (p *painter) curves(ctx context.Context) error {
	// An area that was drawn first lies above later ones.
	for i := len(p.Curves) - 1; i >= 0; i-- {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c := &p.Curves[i]; c.Area && !c.Invisible {
			p.fill(i)
		}
	}
	for i := range p.Curves {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := &p.Curves[i]
		switch {
		case c.Infinite:
			p.verticals(i)
		case !c.Invisible && !(c.Area && p.AreaAlpha == 1 && c.Alpha == 1):
			for _, run := range p.runs(i, p.upper[i]) {
				p.line(run, p.lineWidth(c), c.Dash, faded(p.colors[i], c.Alpha))
			}
		}
	}
	return nil
}

func (p *painter) lineWidth(c *Curve) float64 {
	if c.LineWidth > 0 {
		return min(c.LineWidth, 100)
	}
	return p.LineWidth
}

func (p *painter) verticals(i int) {
	c := &p.Curves[i]
	for j, v := range p.upper[i] {
		if v > 0 {
			x := p.x(float64(c.Start + int64(j)*c.Step))
			p.line([]point{{x, p.area.top}, {x, p.area.bottom}}, p.lineWidth(c), c.Dash, faded(p.colors[i], c.Alpha))
		}
	}
}

// fill draws the area between a curve and what it stands on.
func (p *painter) fill(i int) {
	c := &p.Curves[i]
	paint := faded(p.colors[i], min(c.Alpha, p.AreaAlpha))
	for _, run := range p.runs(i, p.upper[i]) {
		first, last := run[0], run[len(run)-1]
		a := p.axisOf(c)
		if p.lower[i] == nil {
			y := p.y(a, 0)
			p.shape(append(run, point{last.x, y}, point{first.x, y}), paint)
			continue
		}
		base := make([]float64, len(p.upper[i]))
		for j := range base {
			if j < len(p.lower[i]) && !math.IsNaN(p.lower[i][j]) {
				base[j] = p.lower[i][j]
			}
			if x := p.x(float64(c.Start + int64(j)*c.Step)); x < first.x-0.5 || x > last.x+0.5 {
				base[j] = math.NaN()
			}
		}
		var below []point
		for _, r := range p.runs(i, base) {
			below = append(below, r...)
		}
		for j := len(below) - 1; j >= 0; j-- {
			run = append(run, point{min(below[j].x, last.x), below[j].y})
		}
		p.shape(run, paint)
	}
}

func (p *painter) shape(points []point, c color.NRGBA) {
	if len(points) > 2 {
		p.canvas.area(points, c)
	}
}

func (p *painter) axisOf(c *Curve) *axis {
	if c.Second {
		return &p.right
	}
	return &p.left
}

// runs returns the points of values without gaps. A value between two gaps is as wide as a pixel.
func (p *painter) runs(i int, values []float64) (all [][]point) {
	c := &p.Curves[i]
	a := p.axisOf(c)
	var run []point
	for j, v := range values {
		if math.IsNaN(v) {
			if p.Lines != Connected && run != nil {
				all, run = append(all, run), nil
			}
			continue
		}
		at, y := c.Start+int64(j)*c.Step, p.y(a, v)
		run = append(run, point{p.x(float64(at)), y})
		if p.Lines == Staircase {
			run = append(run, point{p.x(float64(at + c.Step)), y})
		}
	}
	if run != nil {
		all = append(all, run)
	}
	for k, r := range all {
		if len(r) == 1 {
			all[k] = []point{{r[0].x - 0.5, r[0].y}, {r[0].x + 0.5, r[0].y}}
		}
	}
	return all
}

func faded(c color.NRGBA, alpha float64) color.NRGBA {
	c.A = uint8(math.Round(float64(c.A) * max(0, min(1, alpha))))
	return c
}
