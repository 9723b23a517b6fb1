package graph

import (
	"context"
	"image/color"
	"io"
	"math"
	"slices"
	"time"
)

// Graph is a picture of curves.
type Graph struct {
	Width, Height, Margin int
	Title                 string
	// ValueTitle stands next to the axis on the left, and SecondTitle next to the one on the right.
	ValueTitle, SecondTitle string
	Zone                    *time.Location
	// Min and Max are the ends of the axis on the left; NaN: those of the values.
	Min, Max               float64
	Lines                  LineMode
	Areas                  AreaMode
	AreaAlpha              float64 // from 0 to 1
	LineWidth, FontSize    float64
	Foreground, Background color.NRGBA
	Grid                   color.NRGBA
	// Palette colours the curves that have no colour, in turn.
	Palette                                 []color.NRGBA
	HideLegend, HideGrid, HideAxes          bool
	HideTimes, HideValues, NullAsZero, Bare bool
	Curves                                  []Curve
}

// LineMode says how the values of a curve are joined.
type LineMode string

// The modes of graphite-web.
const (
	Slope     LineMode = "slope"     // from value to value; a gap stays a gap
	Staircase LineMode = "staircase" // each value lasts for a step
	Connected LineMode = "connected" // as slope, and across gaps
)

// AreaMode says which areas below curves are filled.
type AreaMode string

// The modes of graphite-web.
const (
	NoArea  AreaMode = "none"
	First   AreaMode = "first"
	All     AreaMode = "all"
	Stacked AreaMode = "stacked" // each curve stands on the one before
)

// Curve is a series on a grid of time.
type Curve struct {
	Name string
	// Start and Step are in Unix seconds. NaN is a gap.
	Start, Step int64
	Values      []float64
	Color       *color.NRGBA // nil: of the palette
	Alpha       float64      // from 0 to 1
	LineWidth   float64      // 0: that of the graph
	Dash        float64      // the length of a dash; 0: a solid line
	// Area fills what is below the curve, down to the curve with an area before it.
	Area bool
	// Invisible hides the line, but not what it holds up. Infinite draws a vertical line at each value above 0.
	Invisible, Infinite bool
	// Second draws the curve against the axis on the right.
	Second bool
}

// canvas is what a format paints. Coordinates are pixels from the upper left corner.
type canvas interface {
	rectangle(x, y, w, h float64, c color.NRGBA)
	// line joins points; dash is the length of dashes, or 0.
	line(points []point, width, dash float64, c color.NRGBA)
	area(points []point, c color.NRGBA)
	// text writes a line whose baseline begins, is centred or ends at a point. Upright text runs upwards.
	text(at point, align alignment, size float64, bold, upright bool, c color.NRGBA, s string)
	// clip bounds what follows; a second call lifts the bound.
	clip(b *box)
	finish(w io.Writer) error
}

type point struct{ x, y float64 }

type alignment int

const (
	begin alignment = iota
	middle
	end
)

// box is the area of the curves.
type box struct{ left, top, right, bottom float64 }

func (b *box) width() float64  { return b.right - b.left }
func (b *box) height() float64 { return b.bottom - b.top }

// PNG draws the graph as PNG.
func (g *Graph) PNG(ctx context.Context, w io.Writer) error {
	f := newFonts()
	return g.draw(ctx, newRaster(g.Width, g.Height, f), f, w)
}

// SVG draws the graph as SVG.
func (g *Graph) SVG(ctx context.Context, w io.Writer) error {
	return g.draw(ctx, newVector(g.Width, g.Height), newFonts(), w)
}

func (g *Graph) draw(ctx context.Context, c canvas, f *fonts, w io.Writer) error {
	c.rectangle(0, 0, float64(g.Width), float64(g.Height), g.Background)
	p := painter{Graph: g, canvas: c, fonts: f}
	if err := p.paint(ctx); err != nil {
		return err
	}
	return c.finish(w)
}

// painter draws one graph.
type painter struct {
	*Graph
	canvas
	fonts  *fonts
	colors []color.NRGBA
	// lower and upper are the values of each curve, and those of what it stands on.
	lower, upper [][]float64
	area         box
	from, until  int64
	left, right  axis
}

func (p *painter) paint(ctx context.Context) error {
	m := float64(p.Margin)
	p.area = box{m, m, float64(p.Width) - m, float64(p.Height) - m}
	if p.from, p.until = p.span(); p.from >= p.until {
		at := point{float64(p.Width) / 2, float64(p.Height) / 2}
		p.text(at, middle, max(p.FontSize, 12), false, false, color.NRGBA{200, 0, 50, 255}, "No Data")
		return nil
	}
	p.chooseColors()
	p.stack()
	p.titles()
	if !p.HideLegend {
		p.legend()
	}
	p.axes()
	p.clip(&p.area)
	if err := p.curves(ctx); err != nil {
		return err
	}
	p.clip(nil)
	return nil
}

// span returns the first and the last time of all curves. A curve of one value makes steps, since a slope
// needs two.
func (p *painter) span() (from, until int64) {
	first := true
	for i := range p.Curves {
		c := &p.Curves[i]
		if len(c.Values) == 0 {
			continue
		}
		if len(c.Values) == 1 && p.Lines == Slope {
			p.Lines = Staircase
		}
		last := c.Start + int64(len(c.Values)-1)*c.Step
		if first || c.Start < from {
			from = c.Start
		}
		if first || last > until {
			until = last
		}
		first = false
	}
	if p.Lines == Staircase {
		for i := range p.Curves {
			c := &p.Curves[i]
			until = max(until, c.Start+int64(len(c.Values))*c.Step)
		}
	}
	return from, until
}

func (p *painter) chooseColors() {
	next := 0
	for i := range p.Curves {
		c := p.Curves[i].Color
		if c == nil {
			c = &p.Palette[next%len(p.Palette)]
			next++
		}
		p.colors = append(p.colors, *c)
	}
}

// stack finds the curves with areas, and what each of them stands on.
func (p *painter) stack() {
	var total []float64
	below := -1 // the curve with an area before this one
	for i := range p.Curves {
		c := &p.Curves[i]
		if p.Areas == All || p.Areas == Stacked || p.Areas == First && i == 0 {
			c.Area = !c.Infinite
		}
		values, base := c.Values, []float64(nil)
		if p.NullAsZero {
			values = slices.Clone(values)
			for j, v := range values {
				if math.IsNaN(v) {
					values[j] = 0
				}
			}
		}
		switch {
		case !c.Area:
		case p.Areas == Stacked:
			base = make([]float64, len(values))
			copy(base, total)
			sum := slices.Clone(base)
			for j, v := range values {
				sum[j] += v // a gap stays a gap
				if len(total) == j {
					total = append(total, 0)
				}
				if !math.IsNaN(v) {
					total[j] += v
				}
			}
			values = sum
		case p.Areas != All:
			// The functions areaBetween and stacked give values that hold what is below.
			if below >= 0 && p.Curves[below].Start == c.Start && p.Curves[below].Step == c.Step {
				base = p.upper[below]
			}
			below = i
		}
		p.lower, p.upper = append(p.lower, base), append(p.upper, values)
	}
}

// x returns where a time lies.
func (p *painter) x(at float64) float64 {
	return p.area.left + p.area.width()*(at-float64(p.from))/float64(p.until-p.from)
}
