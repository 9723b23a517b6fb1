package plot

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "re-make the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has changed; look at it, and run go test ./internal/plot -rewrite if it is better:\n%s", name, got)
	}
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			return
		}
	}
}

func TestLines(t *testing.T) {
	wave := func(n int, of func(i int) float64) (points [][2]float64) {
		for i := range n {
			points = append(points, [2]float64{float64(i) * 5, of(i)})
		}
		return points
	}
	golden(t, "lines.svg", (&Lines{
		Title: "Memory & <time>", Unit: "bytes", Bound: 1.3e9, BoundName: "1.15 x 1 GiB + 64 MiB",
		Curves: []Curve{
			{"shale", wave(100, func(i int) float64 { return 1e9 + 1e8*math.Round(math.Sin(float64(i)/9)*100)/100 })},
			{"other", wave(80, func(i int) float64 { return 2e7 * float64(i) })},
		},
		Marks: []Mark{{120, "relabelling"}},
	}).SVG())
}

func TestSizes(t *testing.T) {
	c := Sizes{Title: "Requests to the bucket", Unit: "GET a second"}
	for i, name := range []string{"lru", "lru-shared", "extstore", "sieve", "s3-fifo", "w-tinylfu", "shale", "optimum", "bound"} {
		v := float64(100 - 5*i)
		c.Curves = append(c.Curves, Curve{name, [][2]float64{{1.2e12, v}, {12e12, v / 2}, {50e12, v / 4}}})
	}
	golden(t, "sizes.svg", c.SVG())
	golden(t, "one-size.svg", (&Sizes{Title: "One", Unit: "GET a second", Curves: []Curve{{"lru", [][2]float64{{2e9, 1}}}}}).SVG())
}

func TestBars(t *testing.T) {
	golden(t, "bars.svg", (&Bars{
		Title: "CPU of a million samples", Unit: "seconds", Names: []string{"graphite-known", "rw1-new", "rw2-known"},
		Series: []Series{
			{Name: "shale", Values: []float64{0.8, 3.9, 0.5}, Least: []float64{0.7, 3.5, 0.5}, Most: []float64{0.95, 4, 0.5}},
			{Name: "victoriametrics", Values: []float64{0.85, 26.3, math.NaN()}},
		},
	}).SVG())
}

// Charts of nothing are still charts.
func TestEmpty(t *testing.T) {
	golden(t, "empty-lines.svg", (&Lines{Title: "nothing", Unit: "s", Curves: []Curve{{"a", nil}}}).SVG())
	golden(t, "empty-bars.svg", (&Bars{Title: "nothing"}).SVG())
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		most float64
		want []float64
	}{{1, []float64{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}}, {0, []float64{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}}, {4100, []float64{0, 1000, 2000, 3000, 4000, 5000}}, {26, []float64{0, 10, 20, 30}}} {
		if got := ticks(c.most, 5); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v", c.most, got)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 1500: "1.5k", 2e6: "2M", 1.2e9: "1.2G"} {
		if got := Number(v); got != want {
			t.Errorf("%v: %s", v, got)
		}
	}
}

// A peak of one point survives thinning.
func TestThin(t *testing.T) {
	points := make([][2]float64, 10_000)
	points[7777][1] = 5
	got := thin(points, 100)
	if len(got) != 100 || !slices.Contains(got, [2]float64{0, 5}) {
		t.Error(len(got))
	}
}
