package graph

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"strings"
)

// vectors writes elements of SVG.
type vectors struct {
	bytes.Buffer
	width, height int
	clipped       bool
}

func newVector(w, h int) *vectors {
	v := &vectors{width: w, height: h}
	v.put(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="Go, sans-serif">`, w, h, w, h)
	return v
}

func (v *vectors) put(format string, args ...any) { fmt.Fprintf(v, format+"\n", args...) }

func (v *vectors) clip(b *box) {
	if v.clipped {
		v.put("</g>")
	}
	if v.clipped = b != nil; v.clipped {
		v.put(`<clipPath id="area"><rect x="%s" y="%s" width="%s" height="%s"/></clipPath>`, px(b.left-1), px(b.top-1), px(b.width()+2), px(b.height()+2))
		v.put(`<g clip-path="url(#area)">`)
	}
}

func (v *vectors) rectangle(x, y, w, h float64, c color.NRGBA) {
	v.put(`<rect x="%s" y="%s" width="%s" height="%s" %s/>`, px(x), px(y), px(w), px(h), ink("fill", c))
}

func (v *vectors) line(points []point, width, dash float64, c color.NRGBA) {
	style := ""
	if dash > 0 {
		style = ` stroke-dasharray="` + px(dash) + `"`
	}
	v.put(`<polyline fill="none" %s stroke-width="%s"%s points="%s"/>`, ink("stroke", c), px(width), style, list(points))
}

func (v *vectors) area(points []point, c color.NRGBA) {
	v.put(`<polygon %s points="%s"/>`, ink("fill", c), list(points))
}

func (v *vectors) text(at point, align alignment, size float64, bold, upright bool, c color.NRGBA, s string) {
	place := fmt.Sprintf(`x="%s" y="%s"`, px(at.x), px(at.y))
	if upright {
		place = fmt.Sprintf(`transform="translate(%s %s) rotate(-90)"`, px(at.x), px(at.y))
	}
	weight := ""
	if bold {
		weight = ` font-weight="bold"`
	}
	v.put(`<text %s text-anchor="%s" font-size="%s"%s %s>%s</text>`, place, [...]string{"start", "middle", "end"}[align], px(size), weight, ink("fill", c), escape(s))
}

func (v *vectors) finish(w io.Writer) error {
	v.put("</svg>")
	_, err := w.Write(v.Bytes())
	return err
}

// px writes a length with two decimals at most, so that equal graphs have equal bytes on every machine.
func px(f float64) string {
	s := strings.TrimRight(fmt.Sprintf("%.2f", f), "0")
	if s = strings.TrimSuffix(s, "."); s == "-0" {
		return "0"
	}
	return s
}

func list(points []point) string {
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(px(p.x) + "," + px(p.y))
	}
	return b.String()
}

func ink(name string, c color.NRGBA) string {
	text := fmt.Sprintf(`%s="#%02x%02x%02x"`, name, c.R, c.G, c.B)
	if c.A < 255 {
		text += fmt.Sprintf(` %s-opacity="%s"`, name, px(float64(c.A)/255))
	}
	return text
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder cannot fail
	return b.String()
}
