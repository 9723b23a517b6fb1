package plot

import (
	"fmt"
	"strings"
)

// The measures of a chart in pixels.
const (
	width, height = 800, 400
	left, right   = 76, 20
	top, bottom   = 62, 46
	areaWidth     = width - left - right
	areaHeight    = height - top - bottom
)

// colour returns the colour of the i-th line or bar of each group: Okabe and Ito's, except yellow, which is
// too pale.
func colour(i int) string {
	colours := [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"}
	return colours[i%len(colours)]
}

// dash returns the style that tells a line from the earlier one of the same colour.
func dash(i int) string {
	if i < 7 {
		return ""
	}
	return ` stroke-dasharray="5 3"`
}

// drawing is an SVG that is being written.
type drawing struct{ strings.Builder }

func (d *drawing) begin(title string) {
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" fill="#222">`, width, height, width, height)
	d.put(`<title>%s</title>`, escape(title))
	d.put(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	d.put(`<text x="%d" y="22" font-size="15" font-weight="bold">%s</text>`, left, escape(title))
}

func (d *drawing) end() string {
	d.put(`</svg>`)
	return d.String()
}

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *drawing) text(x, y float64, anchor, text string) {
	d.put(`<text x="%s" y="%s" text-anchor="%s">%s</text>`, px(x), px(y), anchor, escape(text))
}

func (d *drawing) line(x1, y1, x2, y2 float64, style string) {
	d.put(`<line x1="%s" y1="%s" x2="%s" y2="%s" %s/>`, px(x1), px(y1), px(x2), px(y2), style)
}

// legend writes the names next to their colours, in rows below the title.
func (d *drawing) legend(names []string) {
	x, y := float64(left), 34.0
	for i, n := range names {
		w := 17 + 7*float64(len(n)) + 18 // about the width of letters of this size
		if x+w > width && x > left {
			x, y = left, y+14
		}
		d.put(`<rect x="%s" y="%s" width="12" height="12" fill="%s"/>`, px(x), px(y), colour(i))
		d.text(x+17, y+10, "start", n)
		x += w
	}
}

// valueAxis draws the axis of values with its grid and returns where a value lies.
func (d *drawing) valueAxis(unit string, ticks []float64, write func(float64) string) func(v float64) float64 {
	most := ticks[len(ticks)-1]
	at := func(v float64) float64 { return top + areaHeight*(1-v/most) }
	for _, v := range ticks {
		d.line(left, at(v), width-right, at(v), `stroke="#ddd"`)
		d.text(left-8, at(v)+4, "end", write(v))
	}
	d.put(`<text transform="translate(16 %s) rotate(-90)" text-anchor="middle">%s</text>`, px(top+areaHeight/2), escape(unit))
	return at
}

// px writes a length with one decimal at most, so that equal charts have equal bytes on every machine.
func px(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
