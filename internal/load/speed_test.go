package load

import (
	"fmt"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/alloctest"
)

func benchLoad(p Protocol, c Compression, m ValueModel) *RemoteWrite {
	return &RemoteWrite{
		Fleet:    Fleet{Seed: 1, Targets: 1000, Metrics: 10, Series: 100, Labels: 10, Name: "load_metric", Value: m},
		Schedule: Schedule{Timeline: Timeline{Start: 1_700_000_000e9, Step: 1e9}}, Batch: 2000, Protocol: p, Compression: c,
	}
}

func TestFillDoesNotAllocate(t *testing.T) {
	alloctest.Counts(t)
	for _, p := range []Protocol{V1, V2} {
		for _, c := range []Compression{Snappy, Zstd} {
			for _, m := range []ValueModel{Int100, Walk, HistogramInt} {
				l := benchLoad(p, c, m)
				l.Batch, l.Fleet.Exemplars, l.Fleet.Metadata = 250, 0.5, true
				l.Fleet.Churn = Churn{SeriesInterval: 10 * time.Second, StaleMarkers: true, Jitter: 100 * time.Millisecond}
				l.Disorder = Disorder{Late: Lateness{0.1, 10 * time.Second}, Twice: 0.1}
				b, round := newBody(l), 0
				for range 100 {
					round++
					b.fill(7, round)
				}
				// The table of zstd grows now and then.
				alloctest.AtMost(t, 1, 200, func() { round++; b.fill(7, round) })
			}
		}
	}
	for _, p := range []GraphiteProtocol{Plain, Tagged, Pickle} {
		a := Agents{Prefix: "a", Agents: 10, Metrics: 100, Connections: 1, Value: Gauge, Protocol: p}
		l := newFeed(&a, 0, Timeline{Start: 1_700_000_000e9, Step: 1e9})
		buf := make([]byte, 0, 1<<17)
		for range 100 {
			buf, _ = l.fill(buf[:0], 250, 1<<16, true)
		}
		alloctest.AtMost(t, 0, 100, func() { buf, _ = l.fill(buf[:0], 250, 1<<16, true) })
	}
}

// BenchmarkBody is the generator's CPU budget: at most 500 ns for a sample, compressed.
func BenchmarkBody(b *testing.B) {
	for _, p := range []Protocol{V1, V2} {
		for _, c := range []Compression{Snappy, Zstd} {
			for _, m := range []ValueModel{Int100, Counter, Walk, Random, HistogramInt, HistogramFloat, HistogramCustom} {
				b.Run(fmt.Sprintf("%v-%v-%v", p, c, m), func(b *testing.B) {
					benchBody(b, benchLoad(p, c, m))
				})
			}
		}
	}
	for _, p := range []Protocol{V1, V2} {
		b.Run(fmt.Sprintf("%v-churn", p), func(b *testing.B) {
			l := benchLoad(p, Snappy, Int100)
			l.Fleet.Churn = Churn{SeriesInterval: time.Hour, StaleMarkers: true, Jitter: 100 * time.Millisecond}
			benchBody(b, l)
		})
		b.Run(fmt.Sprintf("%v-disorder", p), func(b *testing.B) {
			l := benchLoad(p, Snappy, Int100)
			l.Disorder = Disorder{Late: Lateness{0.1, 10 * time.Minute}, Twice: 0.1}
			benchBody(b, l)
		})
		b.Run(fmt.Sprintf("%v-exemplars", p), func(b *testing.B) {
			l := benchLoad(p, Snappy, Int100)
			l.Fleet.Exemplars = 0.1
			benchBody(b, l)
		})
	}
}

func benchBody(b *testing.B, l *RemoteWrite) {
	body, samples := newBody(l), 0
	for i := 0; b.Loop(); i++ {
		_, _, c := body.fill(i%500, 1000+i)
		samples += c.points()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(samples), "ns/sample")
}

// BenchmarkFeed is the generator's CPU budget: at most 100 ns for a point with everything else that sends it.
func BenchmarkFeed(b *testing.B) {
	for _, p := range []GraphiteProtocol{Plain, Tagged, Pickle} {
		b.Run(p.String(), func(b *testing.B) {
			a := Agents{Prefix: "load", Agents: 100, Metrics: 1000, Connections: 4, Protocol: p}
			l := newFeed(&a, 0, Timeline{Start: 1_700_000_000e9, Step: 1e9})
			buf, points := make([]byte, 0, writeBytes+1024), 0
			for b.Loop() {
				var n int
				buf, n = l.fill(buf[:0], 1<<30, writeBytes, true)
				points += n
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
		})
	}
}
