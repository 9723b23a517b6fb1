package head

import (
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
)

// BenchmarkIngest applies rounds of one row for each of many series, as scrapes do, with flushes and merges
// going on, and reports the CPU time of everything until parts have merged.
func BenchmarkIngest(b *testing.B) {
	for _, series := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(series), func(b *testing.B) { benchmarkIngest(b, series) })
	}
}

func benchmarkIngest(b *testing.B, series int) {
	const batch = 2000
	dir := b.TempDir()
	now := time.Now().UnixNano()
	h, err := Open(b.Context(), Options{
		FS: vfs.Default, Dir: dir + "/head", Seed: testSeed, KnownBytes: 256 << 20, RowBytes: 512 << 20, LabelBytes: 256 << 20,
		Now: func() int64 { return now },
	})
	if err != nil {
		b.Fatal(err)
	}
	h.Start()
	batches := make([]*model.Batch, series/batch)
	for i := range batches {
		batches[i] = &model.Batch{Tenant: "t", Signal: model.Metrics}
		for j := range batch {
			n := i*batch + j
			l := model.LabelsOf("__name__", fmt.Sprintf("avalanche_metric_%d", n%500), "job", "j", "instance", fmt.Sprint("host-", n/10_000), "series_id", fmt.Sprint(n/500))
			batches[i].AddSample(l.Key(testSeed, model.Metrics), now, math.Float64bits(float64(n%100)))
			batches[i].Labels.Append(uint32(j), l)
		}
	}
	began, rows, seq := cpuSeconds(), 0, uint64(0)
	for b.Loop() {
		for _, batch := range batches {
			seq++
			h.Apply(seq, batch)
			batch.Labels.Reset()
			rows += len(batch.Keys)
			for i := range batch.Samples.Times {
				batch.Samples.Times[i] += int64(time.Second)
			}
		}
	}
	if err := h.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	for more := true; more; {
		if more, err = h.Work(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpuSeconds()-began)/float64(rows)*1e6, "cpu-s/Mrow")
	var bytes int64
	for _, p := range h.snapshot() {
		if p.Info.Kind == local.Data {
			bytes += p.Info.Bytes
		}
	}
	b.ReportMetric(float64(bytes)/float64(rows), "B/row")
	if err := h.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkNewSeries applies batches of new series with about 600 bytes of labels each, while flushes and
// merges run. It reports the CPU time until all parts have merged.
func BenchmarkNewSeries(b *testing.B) {
	const batch, perRound = 2000, 100_000
	now := time.Now().UnixNano()
	h, err := Open(b.Context(), Options{
		FS: vfs.Default, Dir: b.TempDir() + "/head", Seed: testSeed, KnownBytes: 256 << 20, RowBytes: 200 << 20, LabelBytes: 100 << 20,
		Now: func() int64 { return now },
	})
	if err != nil {
		b.Fatal(err)
	}
	h.Start()
	began, rows, seq := cpuSeconds(), 0, uint64(0)
	var making float64
	for b.Loop() {
		made := cpuSeconds()
		var batches []*model.Batch
		for range perRound / batch {
			m := &model.Batch{Tenant: "t", Signal: model.Metrics}
			for j := range batch {
				l := newSeries(rows)
				m.AddSample(l.Key(testSeed, model.Metrics), now, math.Float64bits(float64(rows%100)))
				m.Labels.Append(uint32(j), l)
				rows++
			}
			batches = append(batches, m)
		}
		making += cpuSeconds() - made
		for _, m := range batches {
			seq++
			h.Apply(seq, m)
		}
	}
	if err := h.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	for more := true; more; {
		if more, err = h.Work(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpuSeconds()-began-making)/float64(rows)*1e6, "cpu-s/Mseries")
	if err := h.Close(); err != nil {
		b.Fatal(err)
	}
}

func newSeries(n int) model.Labels {
	pairs := []string{"__name__", fmt.Sprint("avalanche_metric_", n%500), "job", "load", "instance", fmt.Sprintf("host-%06d:9090", n/1000), "series_id", fmt.Sprint(n / 500)}
	for i := range 10 {
		pairs = append(pairs, fmt.Sprintf("label_key_kkkkk_%d", i), fmt.Sprintf("label_val_vvvvvvvvvv_%d", i))
	}
	return model.LabelsOf(pairs...)
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
