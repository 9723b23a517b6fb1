package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/values"
)

func benchLoad(p Protocol, c Compression, m values.ValueModel) Encoding {
	return Encoding{
		Fleet:    &fleet.Fleet{Seed: 1, Targets: 1000, Metrics: 10, Series: 100, Labels: 10, Name: "load_metric", Value: m},
		Timeline: pace.Timeline{Start: 1_700_000_000e9, Step: 1e9}, Batch: 2000, Protocol: p, Compression: c,
	}
}

func TestFillDoesNotAllocate(t *testing.T) {
	alloctest.Counts(t)
	for _, p := range []Protocol{V1, V2} {
		for _, c := range []Compression{Snappy, Zstd} {
			for _, m := range []values.ValueModel{values.Int100, values.Walk, values.HistogramInt} {
				l := benchLoad(p, c, m)
				l.Batch, l.Fleet.Exemplars, l.Fleet.Metadata = 250, 0.5, true
				l.Fleet.Churn = fleet.Churn{SeriesInterval: 10 * time.Second, StaleMarkers: true, Jitter: 100 * time.Millisecond}
				l.Disorder = fleet.Disorder{Late: pace.Lateness{Share: 0.1, By: 10 * time.Second}, Twice: 0.1}
				b, round := NewRequests(l), 0
				for range 100 {
					round++
					b.Fill(7, round)
				}
				// The table of zstd grows now and then.
				alloctest.AtMost(t, 1, 200, func() { round++; b.Fill(7, round) })
			}
		}
	}
	for _, p := range []fleet.GraphiteProtocol{fleet.Plain, fleet.Tagged, fleet.Pickle} {
		a := fleet.Agents{Prefix: "a", Agents: 10, Metrics: 100, Connections: 1, Value: values.Gauge, Protocol: p}
		l := NewPoints(&a, 0, pace.Timeline{Start: 1_700_000_000e9, Step: 1e9})
		buf := make([]byte, 0, 1<<17)
		for range 100 {
			buf, _ = l.Fill(buf[:0], 250, 1<<16, true)
		}
		alloctest.AtMost(t, 0, 100, func() { buf, _ = l.Fill(buf[:0], 250, 1<<16, true) })
	}
}

// BenchmarkBody is the generator's CPU budget: at most 500 ns for a sample, compressed.
func BenchmarkBody(b *testing.B) {
	for _, p := range []Protocol{V1, V2} {
		for _, c := range []Compression{Snappy, Zstd} {
			for _, m := range []values.ValueModel{values.Int100, values.Counter, values.Walk, values.Random, values.HistogramInt, values.HistogramFloat, values.HistogramCustom} {
				b.Run(fmt.Sprintf("%v-%v-%v", p, c, m), func(b *testing.B) {
					benchBody(b, benchLoad(p, c, m))
				})
			}
		}
	}
	for _, p := range []Protocol{V1, V2} {
		b.Run(fmt.Sprintf("%v-churn", p), func(b *testing.B) {
			l := benchLoad(p, Snappy, values.Int100)
			l.Fleet.Churn = fleet.Churn{SeriesInterval: time.Hour, StaleMarkers: true, Jitter: 100 * time.Millisecond}
			benchBody(b, l)
		})
		b.Run(fmt.Sprintf("%v-disorder", p), func(b *testing.B) {
			l := benchLoad(p, Snappy, values.Int100)
			l.Disorder = fleet.Disorder{Late: pace.Lateness{Share: 0.1, By: 10 * time.Minute}, Twice: 0.1}
			benchBody(b, l)
		})
		b.Run(fmt.Sprintf("%v-exemplars", p), func(b *testing.B) {
			l := benchLoad(p, Snappy, values.Int100)
			l.Fleet.Exemplars = 0.1
			benchBody(b, l)
		})
	}
}

func benchBody(b *testing.B, l Encoding) {
	body, samples := NewRequests(l), 0
	for i := 0; b.Loop(); i++ {
		_, _, c := body.Fill(i%500, 1000+i)
		samples += c.Points()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(samples), "ns/sample")
}

// BenchmarkFeed is the generator's CPU budget: at most 100 ns for a point with everything else that sends it.
func BenchmarkFeed(b *testing.B) {
	for _, p := range []fleet.GraphiteProtocol{fleet.Plain, fleet.Tagged, fleet.Pickle} {
		b.Run(p.String(), func(b *testing.B) {
			a := fleet.Agents{Prefix: "load", Agents: 100, Metrics: 1000, Connections: 4, Protocol: p}
			l := NewPoints(&a, 0, pace.Timeline{Start: 1_700_000_000e9, Step: 1e9})
			buf, points := make([]byte, 0, 64<<10+1024), 0
			for b.Loop() {
				var n int
				buf, n = l.Fill(buf[:0], 1<<30, 64<<10, true)
				points += n
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
		})
	}
}

// TestShares: shares of late and repeated samples, and of exemplars, are about what is asked for.
func TestShares(t *testing.T) {
	l := benchLoad(V2, Snappy, values.Counter)
	l.Fleet.Exemplars = 0.1
	l.Disorder = fleet.Disorder{Late: pace.Lateness{Share: 0.2, By: 8 * time.Second}, Twice: 0.05}
	b := NewRequests(l)
	var sum Contents
	for batch := range 25 {
		_, _, c := b.Fill(batch, 100)
		sum.Samples, sum.Late, sum.Twice, sum.Exemplars = sum.Samples+c.Samples, sum.Late+c.Late, sum.Twice+c.Twice, sum.Exemplars+c.Exemplars
	}
	near := func(what string, got int, share float64) {
		if want := share * 50_000; float64(got) < 0.9*want || float64(got) > 1.1*want {
			t.Errorf("%s: %d of 50000, want %v", what, got, share)
		}
	}
	near("late", sum.Late, 0.2)
	near("twice", sum.Twice, 0.05*0.8)
	near("exemplars", sum.Exemplars, 0.1)
	if want := []int{1, 2, 4, 8}; len(b.Lags) != 4 || b.Lags[3] != want[3] || b.Lags[0] != want[0] {
		t.Errorf("lags %v", b.Lags)
	}
}
