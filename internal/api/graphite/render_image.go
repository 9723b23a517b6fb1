package graphite

import (
	"bytes"
	"encoding/json"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/plot/graph"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// Bounds of pictures, and the memory of a pixel: its colour, how much of it the current curve covers, and its
// share of the encoded picture.
const (
	maxSide    = 8192
	maxPixels  = 8 << 20
	pixelBytes = 12
)

// usualLegend is up to how many series there is a legend if the request does not say, as in graphite-web.
const usualLegend = 10

// options reads the parameters of a picture and keeps the first error. As in graphite-web, an empty value and
// "default" are as good as none.
type options struct {
	*rendering
	err error
}

func (o *options) text(names ...string) string {
	for _, name := range names {
		if v := o.parameters.Get(name); v != "" && !strings.EqualFold(v, "default") {
			return v
		}
	}
	return ""
}

func (o *options) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// number reads a number from least to most.
func (o *options) number(otherwise, least, most float64, names ...string) float64 {
	text := o.text(names...)
	if text == "" {
		return otherwise
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= least && v <= most) {
		o.fail(badParameters("%s must be a number from %g to %g, not %.100q", names[0], least, most, text))
		return otherwise
	}
	return v
}

// flag is true for all values but 0 and false.
func (o *options) flag(name string) bool {
	v := o.text(name)
	return v != "" && v != "0" && !strings.EqualFold(v, "false")
}

func (o *options) color(name, otherwise string) color.NRGBA {
	text := o.text(name)
	if text == "" {
		text = otherwise
	}
	c, err := graph.ParseColor(text)
	if err != nil {
		o.fail(badParameters("%s: %w", name, err))
	}
	return c
}

// oneOf reads a word.
func oneOf[T ~string](o *options, name string, words ...T) T {
	text := T(strings.ToLower(o.text(name)))
	if text == "" {
		return words[0]
	}
	if !slices.Contains(words, text) {
		o.fail(badParameters("%s must be one of %v, not %.100q", name, words, text))
	}
	return text
}

// readPicture reads the parameters of a picture, before targets are evaluated.
func (q *rendering) readPicture() error {
	o := &options{rendering: q}
	if strings.EqualFold(o.text("graphType"), "pie") {
		return badParameters("graphType=pie is not drawn; line is")
	}
	const finite = math.MaxFloat64
	g := &graph.Graph{
		Width: int(o.number(330, 1, maxSide, "width")), Height: int(o.number(250, 1, maxSide, "height")), Margin: int(o.number(10, 0, 1000, "margin")),
		Title: o.text("title"), ValueTitle: o.text("vtitle"), SecondTitle: o.text("vtitleRight"), Zone: q.zone,
		Min: o.number(math.NaN(), -finite, finite, "yMin", "min"), Max: o.number(math.NaN(), -finite, finite, "yMax", "max"),
		Lines:     oneOf(o, "lineMode", graph.Slope, graph.Staircase, graph.Connected),
		Areas:     oneOf(o, "areaMode", graph.NoArea, graph.First, graph.All, graph.Stacked),
		AreaAlpha: o.number(1, 0, 1, "areaAlpha"), LineWidth: o.number(1.2, 0, 100, "lineWidth", "thickness"), FontSize: o.number(10, 4, 100, "fontSize"),
		Foreground: o.color("fgcolor", "black"), Background: o.color("bgcolor", "white"), Grid: o.color("majorGridLineColor", "rose"),
		Palette:  graph.Palette(),
		HideGrid: o.flag("hideGrid"), HideAxes: o.flag("hideAxes"), HideTimes: o.flag("hideXAxis"), HideValues: o.flag("hideYAxis"),
		NullAsZero: o.flag("drawNullAsZero"),
	}
	if text := o.text("colorList"); text != "" {
		g.Palette = nil
		for name := range strings.SplitSeq(text, ",") {
			c, err := graph.ParseColor(strings.TrimSpace(name))
			if err != nil {
				o.fail(badParameters("colorList: %w", err))
			}
			g.Palette = append(g.Palette, c)
		}
	}
	if o.flag("graphOnly") {
		g.Margin, g.Title, g.ValueTitle, g.SecondTitle = 0, "", "", ""
		g.HideGrid, g.HideAxes, g.HideLegend = true, true, true
	}
	if o.err != nil {
		return o.err
	}
	if g.Width*g.Height > maxPixels {
		return badParameters("a picture of %d x %d pixels has more than %d", g.Width, g.Height, maxPixels)
	}
	q.picture = g
	return q.Quota.TakeBytes(int64(g.Width) * int64(g.Height) * pixelBytes)
}

// readCurves makes curves of the series of a result, with at most one value a pixel.
func (q *rendering) readCurves(list series.List) error {
	g := q.picture
	o := &options{rendering: q}
	g.HideLegend = g.HideLegend || o.flag("hideLegend") || o.text("hideLegend") == "" && len(list) > usualLegend
	span, _ := spanOf(list)
	for _, s := range list {
		c := graph.Curve{
			Name: s.Name, Start: s.Start, Step: s.Step, Values: s.Values, Alpha: 1, LineWidth: s.Draw.LineWidth, Dash: s.Draw.Dashed,
			Area: s.Draw.Stacked, Invisible: s.Draw.Invisible, Infinite: s.Draw.Infinite, Second: s.Draw.SecondYAxis,
		}
		if s.Draw.HasAlpha {
			c.Alpha = s.Draw.Alpha
		}
		if s.Draw.Color != "" {
			of, err := graph.ParseColor(s.Draw.Color)
			if err != nil {
				return badParameters("color: %w", err)
			}
			c.Color = &of
		}
		if n := (span/s.Step + int64(g.Width) - 1) / int64(g.Width); n > 1 && len(s.Values) > 1 {
			var err error
			if c.Values, err = s.Consolidate(int(n), 0); err != nil {
				return err
			}
			c.Step *= n
		}
		// The values, what they stand on, and the points of their lines.
		if err := q.Quota.TakeBytes(int64(len(c.Values))*64 + 512); err != nil {
			return err
		}
		g.Curves = append(g.Curves, c)
	}
	return nil
}

func writePNG(b *api.Body, r *rendering, _ series.List) error {
	var picture bytes.Buffer
	if err := r.picture.PNG(r.ctx, &picture); err != nil {
		return err
	}
	b.Buf = append(b.Buf, picture.Bytes()...)
	return nil
}

// writeSVG writes a picture; with jsonp, as a string.
func writeSVG(b *api.Body, r *rendering, _ series.List) error {
	var picture bytes.Buffer
	if err := r.picture.SVG(r.ctx, &picture); err != nil {
		return err
	}
	if r.jsonp == "" {
		b.Buf = append(b.Buf, picture.Bytes()...)
		return nil
	}
	return withCallback(b, r, func() error {
		text, err := json.Marshal(picture.String())
		b.Buf = append(b.Buf, text...)
		return err
	})
}
