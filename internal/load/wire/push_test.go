package wire

import (
	"testing"
	"time"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/tally"
)

func TestFillLogsDoesNotAllocate(t *testing.T) {
	l := lines.Shape{Seed: 1, Streams: 400, Pods: 5, PerNode: 20, Lines: 500, Mix: lines.DefaultMix(), Windows: 1000, Late: pace.Lateness{Share: 0.1, By: time.Hour}, Twice: 0.1, Equal: 0.1}
	for _, format := range []PushFormat{PushProtobuf, PushJSON} {
		b, window := NewPushes(l.NewWriter(pace.Timeline{Step: 60e9}), format), 0
		for range 50 {
			window++
			b.Fill(window, 3)
		}
		alloctest.AtMost(t, 1, 100, func() { window++; b.Fill(window, 3) })
	}
}

// BenchmarkLogs is the generator's CPU budget for a GB of lines. Most of it is snappy's search for repeated
// text.
func BenchmarkLogs(b *testing.B) {
	for name, format := range map[string]PushFormat{"protobuf": PushProtobuf, "json": PushJSON} {
		b.Run(name, func(b *testing.B) {
			l := lines.Shape{Seed: 1, Streams: 400, Pods: 5, PerNode: 20, Lines: 4400, Mix: lines.DefaultMix(), Windows: 1000}
			body := NewPushes(l.NewWriter(pace.Timeline{Start: 1_700_000_000e9, Step: 60e9}), format)
			var bytes, sent int64
			cpu := tally.UsedCPU() // time on a clock says little while others use the machine
			for i := 0; b.Loop(); i++ {
				zipped, _ := body.Fill(i/20, i%20)
				bytes += body.Bytes
				sent += int64(len(zipped))
			}
			b.ReportMetric((tally.UsedCPU()-cpu).Seconds()/float64(bytes)*1e9, "cpu-s/GB")
			b.ReportMetric(float64(sent)/float64(bytes), "wire/raw")
		})
	}
}
