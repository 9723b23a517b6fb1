package graph

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func usual(curves ...Curve) *Graph {
	for i := range curves {
		if curves[i].Alpha == 0 {
			curves[i].Alpha = 1
		}
	}
	return &Graph{
		Width: 600, Height: 300, Margin: 10, Zone: time.UTC, Min: math.NaN(), Max: math.NaN(), Lines: Slope, Areas: NoArea, AreaAlpha: 1,
		LineWidth: 1.2, FontSize: 10, Foreground: color.NRGBA{0, 0, 0, 255}, Background: color.NRGBA{255, 255, 255, 255},
		Grid: color.NRGBA{200, 150, 200, 255}, Palette: Palette(), Curves: curves,
	}
}

func wave(name string, high float64) Curve {
	c := Curve{Name: name, Start: 1700000040, Step: 60}
	for i := range 60 {
		v := high * (1.5 + math.Sin(float64(i)/6))
		if i > 20 && i < 25 {
			v = math.NaN()
		}
		c.Values = append(c.Values, v)
	}
	return c
}

// graphs are pictures of all that can be drawn.
func graphs(t *testing.T) map[string]*Graph {
	lines := usual(wave("servers.web1.cpu", 10), wave("größe.мера <&>", 20))
	lines.Title, lines.ValueTitle = "Load of web1 & web2", "requests"
	lines.Zone = zone(t, "Europe/Berlin")
	stacked := usual(wave("a", 1000), wave("b", 2000), wave("c", 500))
	stacked.Areas, stacked.AreaAlpha, stacked.Lines = Stacked, 0.6, Staircase
	second := usual(wave("left", 1), wave("right", 1e6), Curve{Name: "deploy", Start: 1700001000, Step: 600, Values: []float64{1, math.NaN(), 1}, Infinite: true})
	second.Curves[1].Second, second.Curves[1].Dash, second.SecondTitle = true, 6, "bytes"
	dark := usual(wave("only", 0.001))
	dark.Background, dark.Foreground, dark.Areas, dark.Lines = color.NRGBA{20, 20, 20, 255}, color.NRGBA{240, 240, 240, 255}, First, Connected
	dark.Min, dark.Max, dark.HideLegend = 0, 0.004, true
	return map[string]*Graph{"lines": lines, "stacked": stacked, "second": second, "dark": dark, "empty": usual()}
}

func TestSVG(t *testing.T) {
	for name, g := range graphs(t) {
		var b bytes.Buffer
		if err := g.SVG(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		path := filepath.Join("testdata", name+".svg")
		if *rewrite {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(want, b.Bytes()) {
			t.Errorf("%s differs (%v); look at it and run with -rewrite", path, err)
		}
	}
}

// TestPNG: a picture has its size, its background at the corner, and pixels in the colours of its curves.
func TestPNG(t *testing.T) {
	for name, g := range graphs(t) {
		var b bytes.Buffer
		if err := g.PNG(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if img.Bounds().Dx() != 600 || img.Bounds().Dy() != 300 {
			t.Errorf("%s: %v", name, img.Bounds())
		}
		found := map[color.NRGBA]int{}
		for x := range 600 {
			for y := range 300 {
				found[color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)]++
			}
		}
		if img.At(0, 0) != img.At(599, 299) || found[g.Background] < 600*300/10 {
			t.Errorf("%s: %d pixels of the background", name, found[g.Background])
		}
		for i := range g.Curves {
			if n := found[Palette()[i]]; n < 20 {
				t.Errorf("%s: %d pixels of curve %d", name, n, i)
			}
		}
	}
}

func TestTimeTicks(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	show := func(all []tick) string {
		var texts []string
		for _, k := range all {
			texts = append(texts, k.label)
		}
		return strings.Join(texts, " ")
	}
	at := func(s string, z *time.Location) int64 {
		x, err := time.ParseInLocation(time.DateTime, s, z)
		if err != nil {
			t.Fatal(err)
		}
		return x.Unix()
	}
	for _, c := range []struct{ from, until, want string }{
		{"2026-01-01 10:00:03", "2026-01-01 10:00:09", "10:00:04 10:00:06 10:00:08"},
		{"2026-01-01 10:00:00", "2026-01-01 11:00:00", "10:00 10:15 10:30 10:45 11:00"},
		{"2026-03-28 22:00:00", "2026-03-29 22:00:00", "Sun 00:00 Sun 06:00 Sun 12:00 Sun 18:00"},
		{"2026-01-05 10:00:00", "2026-01-09 10:00:00", "01/06 01/07 01/08 01/09"},
		{"2026-01-05 10:00:00", "2027-01-05 10:00:00", "Apr 2026 Jul 2026 Oct 2026 Jan 2027"},
		{"2016-01-05 10:00:00", "2026-01-05 10:00:00", "2020 2025"},
	} {
		if got := show(timeTicks(at(c.from, berlin), at(c.until, berlin), berlin, 5)); got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.from, c.until, got, c.want)
		}
	}
}

func TestAxis(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		lo, hi, min, max float64
		want             string
	}{
		{0, 9.3, nan, nan, "0 2 4 6 8 10"}, {-3, 4, nan, nan, "-4 -2 0 2 4"}, {5, 5, nan, nan, "4.4 4.6 4.8 5.0 5.2 5.4 5.6"},
		{0, 0, nan, nan, "-1.0 -0.5 0 0.5 1.0"}, {0, 123456, nan, nan, "0 50K 100K 150K"}, {0.001, 0.002, nan, nan, "0.0010 0.0012 0.0014 0.0016 0.0018 0.0020"},
		{1, 9, 0, 100, "0 20 40 60 80 100"}, {1, 9, 50, nan, "50 51 52 53 54 55"}, {-1e308, 1e308, nan, nan, ""},
	} {
		a := newAxis(c.lo, c.hi, c.min, c.max, 5)
		var texts []string
		for _, v := range a.ticks() {
			texts = append(texts, a.label(v))
		}
		if got := strings.Join(texts, " "); c.want != "" && got != c.want || len(texts) == 0 {
			t.Errorf("%v: %s, want %s", c, got, c.want)
		}
	}
}

func TestParseColor(t *testing.T) {
	for text, want := range map[string]color.NRGBA{
		"Blue": {100, 100, 255, 255}, "#102030": {16, 32, 48, 255}, "10203040": {16, 32, 48, 64},
	} {
		if c, err := ParseColor(text); err != nil || c != want {
			t.Errorf("%s: %v %v", text, c, err)
		}
	}
	for _, text := range []string{"", "#12", "nosuch", "#gggggg"} {
		if c, err := ParseColor(text); err == nil {
			t.Errorf("%q is %v", text, c)
		}
	}
}

// Odd values end in a picture.
func TestOddValues(t *testing.T) {
	for _, values := range [][]float64{{1}, {math.NaN()}, {math.Inf(1), 1}, {math.MaxFloat64, -math.MaxFloat64}, {5e-324, 0}, {1e300, 1e300}} {
		for _, size := range [][2]int{{600, 300}, {20, 20}, {1, 1}} {
			g := usual(Curve{Name: strings.Repeat("long ", 100), Start: 0, Step: 60, Values: values})
			g.Width, g.Height, g.Title, g.ValueTitle, g.Areas = size[0], size[1], "t", "v", All
			var b bytes.Buffer
			if err := errors.Join(g.PNG(context.Background(), io.Discard), g.SVG(context.Background(), &b)); err != nil {
				t.Errorf("%v %v: %v", values, size, err)
			}
			if bytes.Contains(b.Bytes(), []byte("NaN")) || bytes.Contains(b.Bytes(), []byte("Inf")) {
				t.Errorf("%v %v: NaN or Inf in the picture", values, size)
			}
		}
	}
}
