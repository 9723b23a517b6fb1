package graph

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// raster paints pixels.
type raster struct {
	img   *image.RGBA
	fonts *fonts
	z     vector.Rasterizer
	bound image.Rectangle
}

func newRaster(w, h int, f *fonts) *raster {
	r := &raster{img: image.NewRGBA(image.Rect(0, 0, w, h)), fonts: f}
	r.bound = r.img.Bounds()
	return r
}

func (r *raster) clip(b *box) {
	r.bound = r.img.Bounds()
	if b != nil {
		// A line at the edge of the area is half outside of it.
		r.bound = r.bound.Intersect(image.Rect(int(b.left)-1, int(b.top)-1, int(math.Ceil(b.right))+1, int(math.Ceil(b.bottom))+1))
	}
}

func (r *raster) rectangle(x, y, w, h float64, c color.NRGBA) {
	at := image.Rect(int(math.Round(x)), int(math.Round(y)), int(math.Round(x+w)), int(math.Round(y+h)))
	draw.Draw(r.img, at.Intersect(r.bound), image.NewUniform(c), image.Point{}, draw.Over)
}

// paint fills the polygons that add draws, within their bounds.
func (r *raster) paint(points []point, grow float64, c color.NRGBA, add func(dx, dy float64)) {
	b := image.Rectangle{}
	for i, p := range points {
		at := image.Rect(int(math.Floor(p.x-grow)), int(math.Floor(p.y-grow)), int(math.Ceil(p.x+grow))+1, int(math.Ceil(p.y+grow))+1)
		if i == 0 {
			b = at
		}
		b = b.Union(at)
	}
	b = b.Intersect(r.bound)
	if b.Empty() {
		return
	}
	r.z.Reset(b.Dx(), b.Dy())
	add(float64(-b.Min.X), float64(-b.Min.Y))
	r.z.Draw(r.img, b, image.NewUniform(c), image.Point{})
}

func (r *raster) polygon(dx, dy float64, points ...point) {
	for i, p := range points {
		x, y := float32(p.x+dx), float32(p.y+dy)
		if i == 0 {
			r.z.MoveTo(x, y)
		} else {
			r.z.LineTo(x, y)
		}
	}
	r.z.ClosePath()
}

func (r *raster) area(points []point, c color.NRGBA) {
	r.paint(points, 1, c, func(dx, dy float64) { r.polygon(dx, dy, points...) })
}

// line draws a rectangle for each stretch, and an octagon at each joint. All run around in the same
// direction, so that they add up where they overlap.
func (r *raster) line(points []point, width, dash float64, c color.NRGBA) {
	half := width / 2
	for _, part := range dashes(points, dash) {
		r.paint(part, width+1, c, func(dx, dy float64) {
			for i := 1; i < len(part); i++ {
				a, b := part[i-1], part[i]
				length := math.Hypot(b.x-a.x, b.y-a.y)
				if length == 0 {
					continue
				}
				nx, ny := -(b.y-a.y)/length*half, (b.x-a.x)/length*half
				r.polygon(dx, dy, point{a.x + nx, a.y + ny}, point{b.x + nx, b.y + ny}, point{b.x - nx, b.y - ny}, point{a.x - nx, a.y - ny})
				if i > 1 {
					r.octagon(dx, dy, a, half)
				}
			}
		})
	}
}

func (r *raster) octagon(dx, dy float64, at point, radius float64) {
	var corners [8]point
	for i := range corners {
		sin, cos := math.Sincos(-float64(i) * math.Pi / 4)
		corners[i] = point{at.x + cos*radius, at.y + sin*radius}
	}
	r.polygon(dx, dy, corners[:]...)
}

// dashes cuts a line into dashes; between two of them is a gap of the same length.
func dashes(points []point, length float64) (parts [][]point) {
	if length <= 0 || len(points) == 0 {
		return [][]point{points}
	}
	length = max(length, 0.5)
	on, left := true, length
	part := []point{points[0]}
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		rest := math.Hypot(b.x-a.x, b.y-a.y)
		for rest > 0 {
			step := min(rest, left)
			share := step / rest
			a = point{a.x + (b.x-a.x)*share, a.y + (b.y-a.y)*share}
			rest -= step
			if on {
				part = append(part, a)
			}
			if left -= step; left > 0 {
				continue
			}
			if on {
				parts = append(parts, part)
			}
			on, left, part = !on, length, []point{a}
		}
	}
	if on && len(part) > 1 {
		parts = append(parts, part)
	}
	return parts
}

func (r *raster) text(at point, align alignment, size float64, isBold, upright bool, c color.NRGBA, s string) {
	face := r.fonts.face(size, isBold)
	wide := r.fonts.width(s, size, isBold)
	shift := 0.0
	switch align {
	case middle:
		shift = wide / 2
	case end:
		shift = wide
	}
	d := font.Drawer{Dst: r.img, Src: image.NewUniform(c), Face: face}
	if !upright {
		d.Dot = fixed.Point26_6{X: fixed.Int26_6(math.Round((at.x - shift) * 64)), Y: fixed.Int26_6(math.Round(at.y * 64))}
		d.DrawString(s)
		return
	}
	// The text is written level, and then turned.
	m := face.Metrics()
	w, up, down := min(int(math.Ceil(wide))+2, r.img.Bounds().Dy()), m.Ascent.Ceil()+1, m.Descent.Ceil()+1
	level := image.NewAlpha(image.Rect(0, 0, w, up+down))
	d.Dst, d.Src, d.Dot = level, image.Opaque, fixed.P(1, up)
	d.DrawString(s)
	turned := image.NewAlpha(image.Rect(0, 0, up+down, w))
	for x := range w {
		for y := range up + down {
			turned.SetAlpha(y, w-1-x, level.AlphaAt(x, y))
		}
	}
	corner := image.Pt(int(math.Round(at.x))-up, int(math.Round(at.y+shift))-w)
	draw.DrawMask(r.img, turned.Bounds().Add(corner), image.NewUniform(c), image.Point{}, turned, image.Point{}, draw.Over)
}

func (r *raster) finish(w io.Writer) error { return png.Encode(w, r.img) }
