package plot

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"
)

// draw returns a chart as text.
func draw(t *testing.T, c *Chart) string {
	t.Helper()
	var out bytes.Buffer
	if err := c.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCharts draws the charts of the text files. A line is a series: its name and its values, a step apart;
// "-" is a missing point, and "wave(n)" are n values. Escape sequences are shown as ^[.
func TestCharts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			c := Chart{Width: 72, Height: 12, Step: 60_000, Colour: d.HasArg("colour"), UTF8: !d.HasArg("ascii")}
			start, step := "2026-11-23T06:30:00Z", "1m"
			d.MaybeScanArgs(t, "from", &start)
			d.MaybeScanArgs(t, "step", &step)
			d.MaybeScanArgs(t, "width", &c.Width)
			d.MaybeScanArgs(t, "height", &c.Height)
			from, err := time.Parse(time.RFC3339, start)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			every, err := time.ParseDuration(step)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			c.From, c.Step = from.UnixMilli(), every.Milliseconds()
			c.To = c.From
			for line := range strings.Lines(d.Input) {
				name, values, _ := strings.Cut(strings.TrimSpace(line), ": ")
				s := Series{Name: name}
				at := c.From
				for _, v := range valuesOf(t, values) {
					if v != nil {
						s.Points = append(s.Points, Point{at, *v})
					}
					c.To = max(c.To, at)
					at += c.Step
				}
				c.Series = append(c.Series, s)
			}
			return strings.ReplaceAll(draw(t, &c), "\x1b", "^[")
		})
	})
}

func valuesOf(t *testing.T, text string) (values []*float64) {
	t.Helper()
	for field := range strings.FieldsSeq(text) {
		var n, phase int
		if got, _ := fmt.Sscanf(field, "wave(%d,%d)", &n, &phase); got == 2 {
			for i := range n {
				v := 50 + 40*math.Sin(float64(i+phase)/8)
				values = append(values, &v)
			}
			continue
		}
		if field == "-" {
			values = append(values, nil)
			continue
		}
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, &v)
	}
	return values
}

// TestRandomCharts: whatever the values, times and sizes are, a chart is drawn, in the width that was asked
// for, and every finite value is in it.
func TestRandomCharts(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	extremes := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, 2 * math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 1, 1 + 1e-16, 1e15, 1e15 + 0.125, 1e-300, 42}
	for range 2000 {
		c := Chart{
			Width: r.IntN(120), Height: r.IntN(40), Colour: r.IntN(2) == 0, UTF8: r.IntN(2) == 0,
			Step: 1 + r.Int64N([]int64{1, 1000, 60_000, 1e9}[r.IntN(4)]), From: r.Int64N(4e12) - 2e12,
		}
		c.To = c.From + r.Int64N([]int64{1, 1000, 3_600_000, 1e10, 1.8e13}[r.IntN(5)])
		finite := false
		for i := range 1 + r.IntN(MaxSeries) {
			s := Series{Name: fmt.Sprint("größe ", i)}
			for at := c.From; at <= c.To && len(s.Points) < 100; at += 1 + r.Int64N(2*c.Step) {
				v := extremes[r.IntN(len(extremes))]
				if r.IntN(2) == 0 {
					v = (r.Float64() - 0.3) * math.Pow(10, float64(r.IntN(40)-20))
				}
				finite = finite || !math.IsNaN(v) && !math.IsInf(v, 0)
				s.Points = append(s.Points, Point{at, v})
			}
			c.Series = append(c.Series, s)
		}
		text := draw(t, &c)
		plain := text
		for _, colour := range colours {
			plain = strings.ReplaceAll(plain, fmt.Sprintf("\x1b[%dm", colour), "")
		}
		plain = strings.ReplaceAll(plain, reset, "")
		rows := strings.Split(plain, "\n")
		if !utf8.ValidString(text) || strings.Contains(plain, "\x1b") || !c.UTF8 && len(text) != utf8.RuneCountInString(text) {
			t.Fatalf("%+v: %q", c, text)
		}
		drawn := 0
		for i, row := range rows[:max(c.Height, minRows)+2] {
			margin := strings.IndexAny(rows[max(c.Height, minRows)], "└+") + 1
			if n := utf8.RuneCountInString(row); n > max(c.Width, margin+minColumns) {
				t.Fatalf("%+v: row %d has %d columns:\n%s", c, i, n, text)
			}
			if i < max(c.Height, minRows) {
				drawn += len(strings.TrimSpace(string([]rune(row)[margin:])))
			}
		}
		if finite != (drawn > 0) {
			t.Fatalf("%+v: %d cells are drawn:\n%s", c, drawn, text)
		}
	}
}

func BenchmarkChart(b *testing.B) {
	c := Chart{Width: 120, Height: 30, Step: 1000, To: 11_000_000, UTF8: true, Colour: true}
	for i := range MaxSeries {
		s := Series{Name: "a"}
		for j := range 11_000 {
			s.Points = append(s.Points, Point{int64(j) * 1000, math.Sin(float64(i+j) / 300)})
		}
		c.Series = append(c.Series, s)
	}
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if err := c.Write(&out); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTicks: an axis may have labels of its own, and those without room are left out.
func TestTicks(t *testing.T) {
	c := Chart{
		Series: []Series{{Name: "hits", Points: []Point{{0, 1}, {100, 2}, {1000, 3}}}}, From: 0, To: 1000, Step: 1000, Width: 40, Height: 3, Caption: "by size",
		Ticks: []Tick{{0, "0.5x"}, {10, "crowded"}, {500, "4x"}, {1000, "20x"}},
	}
	var out strings.Builder
	if err := c.Write(&out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "0.5x             4x               20x") || !strings.Contains(got, "by size") || strings.Contains(got, "crowded") {
		t.Errorf("got\n%s", got)
	}
}
