package compact

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// BenchmarkMerge merges the twelve windows of a day: series of one tenant that are scraped every 30 s,
// counters and gauges in equal shares, in a bucket on the disk. Bytes are those of the inputs.
func BenchmarkMerge(b *testing.B) {
	const series, windowRows = 5000, 240
	d := newOnDisk(b)
	var labels []model.Labels
	for i := range series {
		labels = append(labels, model.LabelsOf("__name__", fmt.Sprint("metric_", i%100), "instance", fmt.Sprintf("host-%04d:9100", i/100), "job", "node", "mode", fmt.Sprint(i%7)))
	}
	all := inOrder(model.Metrics, labels)
	for n := range 12 {
		d.shipWindow(b, n, all, windowRows)
	}
	var inputs int64
	for _, block := range d.c.Live() {
		inputs += block.Bytes
	}
	b.SetBytes(inputs)
	comp := d.compactor(b, dayZero+25*int64(time.Hour), 0)
	if err := comp.refresh(ctx); err != nil {
		b.Fatal(err)
	}
	j, _ := comp.next(d.c.Live(), nil)
	runtime.GC()
	before := heap()
	peak := watchHeap()
	b.ReportAllocs()
	for b.Loop() {
		m := comp.newMerge(ctx, j, nil)
		if err := m.merge(); err != nil {
			b.Fatal(err)
		}
		for _, done := range m.uploads {
			done()
		}
	}
	b.ReportMetric(float64(peak()-before)/1e6, "peak-heap-MB")
	b.ReportMetric(float64(12*series*windowRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func (d *onDisk) shipWindow(b *testing.B, n int, series []keyed, rows int) {
	b.Helper()
	start := dayZero + int64(n)*int64(2*time.Hour)
	var r model.SeriesRows
	d.ship(b, n, model.Metrics, series, func(pw *part.Writer, i int) error {
		r.Reset()
		h := uint64(i+1) * 0x9e3779b97f4a7c15
		v := float64(h >> 50)
		for at := range rows {
			h ^= h << 13
			h ^= h >> 7
			h ^= h << 17
			if i%2 == 0 {
				v += float64(h >> 58) // a counter
			} else {
				v = float64(h>>54) / 10 // a gauge
			}
			r.Samples.Append(start+int64(at)*int64(30*time.Second)+int64(h>>45), math.Float64bits(v), 0)
		}
		return pw.Rows(&r)
	})
}
