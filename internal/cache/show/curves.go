package show

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/shaledb/shale/internal/cache/curve"
	"github.com/shaledb/shale/internal/cache/report"
	"github.com/shaledb/shale/internal/plot"
	"github.com/shaledb/shale/internal/terminal"
	terminalplot "github.com/shaledb/shale/internal/terminal/plot"
)

// printCurves draws the hit ratio over the size of each tier.
func printCurves(out io.Writer, screen terminal.Screen, c *report.Curves) error {
	if c == nil {
		_, err := fmt.Fprintln(out, "\nno query has asked for pages of the bucket yet, so there are no curves")
		return err
	}
	disk := "SSD, now " + plot.Bytes(float64(c.Sizes.SSD))
	if c.Sizes.NoSSD {
		disk = "SSD, if there were one: 1x is " + plot.Bytes(float64(c.Sizes.SSD))
	}
	chart := terminalplot.Chart{
		Width: screen.Width, Height: 10, Colour: screen.Colour, UTF8: screen.UTF8,
		Series: []terminalplot.Series{
			{Name: disk, Points: curvePoints(c.SSD, func(e *curve.Estimate) float64 { return e.SSDFactor })},
			{Name: "memory for pages, now " + plot.Bytes(float64(c.Sizes.RAM)), Points: curvePoints(c.RAM, func(e *curve.Estimate) float64 { return e.RAMFactor })},
		},
		Caption: fmt.Sprintf("first touches that need no bucket, in %%, by the size of one tier; the last %s, %.3g %% of the keys",
			time.Duration(c.Seconds*float64(time.Second)).Round(time.Second), 100*c.Share),
	}
	for _, f := range curve.Factors {
		chart.Ticks = append(chart.Ticks, terminalplot.Tick{At: placeOf(f), Label: fmt.Sprintf("%gx", f)})
	}
	chart.From, chart.To = chart.Ticks[0].At, chart.Ticks[len(chart.Ticks)-1].At
	chart.Step = chart.To - chart.From
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return chart.Write(out)
}

// placeOf returns where a factor is on a logarithmic axis.
func placeOf(factor float64) int64 { return int64(math.Log2(factor) * 1000) }

func curvePoints(estimates []curve.Estimate, factor func(*curve.Estimate) float64) (points []terminalplot.Point) {
	for i := range estimates {
		e := &estimates[i]
		points = append(points, terminalplot.Point{At: placeOf(factor(e)), Value: 100 * e.HitRatio})
	}
	return points
}

// printWhatIf compares two sizes.
func printWhatIf(out io.Writer, w *report.WhatIf) error {
	_, err := fmt.Fprintf(out, "traffic of %s in %d hours, %.3g %% of the keys; measured with the sizes of now: %s %% of first touches hit\n\n",
		time.Duration(w.Seconds*float64(time.Second)).Round(time.Second), w.Hours, 100*w.Share, percent(w.Measured))
	if err != nil {
		return err
	}
	rate := func(v float64) string { return fmt.Sprintf("%.4g", v) }
	dollars := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	rows := [][]string{{"", "now", "then"}}
	for _, line := range []struct {
		name string
		of   func(*report.Costed) string
	}{
		{"memory budget", func(c *report.Costed) string { return plot.Bytes(c.MemoryBytes) }},
		{"memory for pages", func(c *report.Costed) string { return plot.Bytes(c.RAMBytes) }},
		{"SSD", func(c *report.Costed) string { return plot.Bytes(c.SSDBytes) }},
		{"first touches that hit, %", func(c *report.Costed) string { return percent(c.HitRatio) }},
		{"  in memory, %", func(c *report.Costed) string { return percent(c.RAMHitRatio) }},
		{"  on the SSD, %", func(c *report.Costed) string { return percent(c.SSDHitRatio) }},
		{"requests to the bucket a second", func(c *report.Costed) string { return rate(c.Requests) }},
		{"  in the worst minute", func(c *report.Costed) string { return rate(c.PeakRequests) }},
		{"  share of the provider's limit, %", func(c *report.Costed) string {
			if w.Limit == 0 {
				return "-"
			}
			return percent(c.PeakRequests / w.Limit)
		}},
		{"SSD writes a day", func(c *report.Costed) string { return plot.Bytes(c.Written) }},
		{"SSD drive writes a day", func(c *report.Costed) string { return rate(c.DriveWrites) }},
		{"SSD churn, %", func(c *report.Costed) string { return percent(c.Churn) }},
		{"SSD turnovers an hour", func(c *report.Costed) string { return rate(c.Turnovers) }},
		{"SSD Gbps in the worst minute", func(c *report.Costed) string { return rate(c.Gbps) }},
		{"SSD reads a second in the worst minute", func(c *report.Costed) string { return rate(c.IOPS) }},
		{"bucket, dollars a month", func(c *report.Costed) string { return dollars(c.BucketDollars) }},
		{"memory, dollars a month", func(c *report.Costed) string { return dollars(c.MemoryDollars) }},
		{"SSD, dollars a month", func(c *report.Costed) string { return dollars(c.SSDDollars) }},
	} {
		rows = append(rows, []string{line.name, line.of(&w.Now), line.of(&w.Then)})
	}
	return terminal.Table(out, rows)
}
