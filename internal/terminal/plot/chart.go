package plot

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Chart is series over a time range.
type Chart struct {
	Series   []Series // at most [MaxSeries]
	From, To int64    // the range, in Unix milliseconds
	// Step is the distance of points in milliseconds. A line is broken where points are missing.
	Step int64
	// Ticks label the axis in place of times, and Caption stands below it. Empty: the axis is of times.
	Ticks   []Tick
	Caption string
	// Width is the columns of all rows but those of the legend, and Height the rows between the axes.
	Width, Height int
	Colour, UTF8  bool // the terminal shows these
}

// Tick is a place on the axis with its label.
type Tick struct {
	At    int64 // as that of points
	Label string
}

// Series is a line of a chart.
type Series struct {
	Name   string
	Points []Point // by time
}

// Point is a sample. The line has a gap at a value that is NaN or infinite.
type Point struct {
	At    int64 // in Unix milliseconds
	Value float64
}

func (p *Point) finite() bool { return !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) }

// MaxSeries is how many series a chart tells apart: there is a colour for each.
const MaxSeries = len(colours)

// minColumns keeps a chart legible in a narrow window.
const minColumns, minRows = 20, 3

// Write draws the chart and its legend.
func (c *Chart) Write(w io.Writer) error {
	lo, hi := c.extent()
	rows := max(c.Height, minRows)
	y := newValueAxis(lo, hi, rows)
	margin := 0
	for _, label := range y.labels {
		margin = max(margin, len(label))
	}
	columns := max(c.Width-margin-2, minColumns)
	canvas := newCanvas(columns, rows, c.braille())
	for i := len(c.Series) - 1; i >= 0; i-- { // the first series is on top
		c.draw(canvas, &y, i)
	}
	s := symbols(c.UTF8)
	var out bytes.Buffer
	for row := range rows {
		label, tick := y.labelOf(row, rows)
		edge := s.wall
		if tick {
			edge = s.tickLeft
		}
		fmt.Fprintf(&out, "%*s %s", margin, label, edge)
		c.row(&out, canvas, row)
	}
	ticks, labels := c.axis(columns)
	blank := strings.Repeat(" ", margin+2)
	out.WriteString(blank[1:] + s.corner)
	for column := range columns {
		if slices.Contains(ticks, column) {
			out.WriteString(s.tickBelow)
		} else {
			out.WriteString(s.floor)
		}
	}
	fmt.Fprintf(&out, "\n%s%s\n%s%s\n", blank, labels, blank, c.caption())
	c.legend(&out)
	_, err := w.Write(out.Bytes())
	return err
}

// braille reports whether lines are dots. Only colours tell the dots of several series apart.
func (c *Chart) braille() bool { return c.UTF8 && (c.Colour || len(c.Series) == 1) }

// extent returns the least and the greatest finite value.
func (c *Chart) extent() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := range c.Series {
		for j := range c.Series[i].Points {
			if p := &c.Series[i].Points[j]; p.finite() {
				lo, hi = min(lo, p.Value), max(hi, p.Value)
			}
		}
	}
	if lo > hi {
		return 0, 0
	}
	return lo, hi
}

// draw draws the lines of a series, each between two points that are a step apart.
func (c *Chart) draw(canvas *canvas, y *valueAxis, series int) {
	var last struct {
		x, y  int
		at    int64
		known bool
	}
	for i := range c.Series[series].Points {
		p := &c.Series[series].Points[i]
		if p.At < c.From || p.At > c.To {
			continue
		}
		if !p.finite() {
			last.known = false
			continue
		}
		dotX := position(p.At, c.From, c.To, canvas.dotsX())
		dotY := canvas.dotsY() - 1 - int(math.Round(y.share(p.Value)*float64(canvas.dotsY()-1)))
		if last.known && p.At-last.at <= c.Step+c.Step/2 {
			canvas.line(last.x, last.y, dotX, dotY, series)
		} else {
			canvas.set(dotX, dotY, series)
		}
		last.x, last.y, last.at, last.known = dotX, dotY, p.At, true
	}
}

// row writes a row of the canvas without the blanks at its end.
func (c *Chart) row(out *bytes.Buffer, canvas *canvas, row int) {
	colour, cells := -1, canvas.row(row)
	for len(cells) > 0 && cells[len(cells)-1].dots == 0 {
		cells = cells[:len(cells)-1]
	}
	for _, cell := range cells {
		if c.Colour && cell.dots != 0 && cell.series != colour {
			colour = cell.series
			fmt.Fprintf(out, "\x1b[%dm", colours[colour])
		}
		switch {
		case cell.dots == 0:
			out.WriteByte(' ')
		case canvas.braille:
			out.WriteRune('\u2800' + rune(cell.dots))
		default:
			out.WriteByte(c.letter(cell.series))
		}
	}
	if colour >= 0 {
		out.WriteString(reset)
	}
	out.WriteByte('\n')
}

// letter is the mark of a series that is not drawn in dots.
func (c *Chart) letter(series int) byte {
	if len(c.Series) == 1 {
		return '*'
	}
	return 'a' + byte(series)
}

// caption says which dates the times on the axis belong to, and in which zone they are.
func (c *Chart) caption() string {
	if len(c.Ticks) > 0 {
		return c.Caption
	}
	layout, step := time.DateTime, (time.Duration(c.Step) * time.Millisecond).String()
	if c.Step%1000 != 0 {
		layout += ".000"
	}
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(step, zero) {
			step = step[:len(step)-2]
		}
	}
	show := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(layout) }
	return fmt.Sprintf("%s to %s UTC, a point every %s", show(c.From), show(c.To), step)
}

// legend writes a row for each series. Its name is at the end, because it may be longer than a row.
func (c *Chart) legend(out *bytes.Buffer) {
	rows := [][3]string{{"MAX", "LAST", "SERIES"}}
	for i := range c.Series {
		s := &c.Series[i]
		row := [3]string{"-", "-", s.Name}
		greatest := math.Inf(-1)
		for j := range s.Points {
			if p := &s.Points[j]; p.finite() {
				greatest = max(greatest, p.Value)
				row[0], row[1] = compact(greatest), compact(p.Value)
			}
		}
		if !c.UTF8 {
			row[2] = ascii(s.Name)
		}
		rows = append(rows, row)
	}
	var widths [2]int
	for _, row := range rows {
		widths[0], widths[1] = max(widths[0], len(row[0])), max(widths[1], len(row[1]))
	}
	for i, row := range rows {
		mark := "  "
		switch {
		case i == 0:
		case c.braille():
			mark = "\u2809\u2809" // the two upper dots, twice: a line
		default:
			mark = string(c.letter(i-1)) + " "
		}
		if i > 0 && c.Colour {
			mark = fmt.Sprintf("\x1b[%dm%s%s", colours[i-1], mark, reset)
		}
		fmt.Fprintf(out, "%s  %*s  %*s  %s\n", mark, widths[0], row[0], widths[1], row[1], row[2])
	}
}

// ascii writes the other characters of a text as Go does.
func ascii(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return text
	}
	var out []byte
	for _, r := range text {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
			continue
		}
		quoted := strconv.AppendQuoteRuneToASCII(nil, r)
		out = append(out, quoted[1:len(quoted)-1]...)
	}
	return string(out)
}

// colours are the colours of series, in SGR. Terminals let people choose what they look like. Black and white
// are left out, because one of them is the background.
var colours = [...]int{32, 33, 34, 35, 36, 31, 92, 93, 94, 95, 96, 91}

const reset = "\x1b[0m"

// frame holds what axes are drawn with.
type frame struct{ wall, tickLeft, floor, tickBelow, corner string }

func symbols(unicode bool) frame {
	if unicode {
		return frame{"│", "┤", "─", "┬", "└"}
	}
	return frame{"|", "+", "-", "+", "+"}
}
