package compact

import (
	"fmt"
	"math"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// BenchmarkMerge merges the twelve windows of a day: series of one tenant that are scraped every 30 s, counters and
// gauges in equal shares, in a bucket on the disk. Bytes are those of the inputs.
func BenchmarkMerge(b *testing.B) {
	const series, windowRows = 5000, 240
	bucket, err := fs.New(vfs.Default, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	c, err := catalog.Open(ctx, bucket)
	if err != nil {
		b.Fatal(err)
	}
	labels := make(map[model.Key]model.Labels)
	for i := range series {
		l := model.LabelsOf("__name__", fmt.Sprint("metric_", i%100), "instance", fmt.Sprintf("host-%04d:9100", i/100), "job", "node", "mode", fmt.Sprint(i%7))
		labels[l.Key(seed, model.Metrics)] = l
	}
	keys := sortedKeys(labels)
	for n := range 12 {
		shipWindow(b, c, bucket, n, keys, labels, windowRows)
	}
	var inputs int64
	for _, block := range c.Live() {
		inputs += block.Bytes
	}
	b.SetBytes(inputs)
	now := dayZero + 25*int64(time.Hour)
	o := Options{Catalog: c, Bucket: bucket, FS: vfs.Default, Dir: b.TempDir(), Seed: seed, Now: func() int64 { return now }}
	comp, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	if err := comp.look(ctx); err != nil {
		b.Fatal(err)
	}
	j, _ := comp.next(c.Live(), nil)
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

func shipWindow(b *testing.B, c *catalog.Catalog, bucket *fs.Bucket, n int, keys []model.Key, labels map[model.Key]model.Labels, rows int) {
	b.Helper()
	start := dayZero + int64(n)*int64(2*time.Hour)
	file, err := vfs.Default.Create(b.TempDir()+"/block", vfs.WriteCategoryUnspecified)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	pw := part.NewWriter(file, part.WriterOptions{
		Seed: seed, Signal: model.Metrics, Node: "n1", SeqLo: uint64(n + 1), SeqHi: uint64(n + 1), Labels: true, Level: part.Dense, Created: start,
	})
	var r model.SeriesRows
	for i, k := range keys {
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
		if err := pw.Series("tenant", k, labels[k]); err != nil {
			b.Fatal(err)
		}
		if err := pw.Rows(&r); err != nil {
			b.Fatal(err)
		}
	}
	m, size, err := pw.Finish()
	if err != nil {
		b.Fatal(err)
	}
	block := catalog.Block{
		ID: fmt.Sprint("window-", n), Node: "n1", Signal: model.Metrics, SeqLo: m.SeqLo, SeqHi: m.SeqHi, Range: m.Range, Series: m.Series,
		Samples: m.Samples, Bytes: size, Created: start, KeyMin: keys[0], KeyMax: keys[len(keys)-1], Tenants: []string{"tenant"},
	}
	if err := bucket.Put(ctx, catalog.ObjectName(block.ID), &fileReader{file, 0}, size); err != nil {
		b.Fatal(err)
	}
	if err := c.Commit(ctx, block); err != nil {
		b.Fatal(err)
	}
}

// fileReader reads a file from its beginning.
type fileReader struct {
	f  vfs.File
	at int64
}

func (r *fileReader) Read(p []byte) (int, error) {
	n, err := r.f.ReadAt(p, r.at)
	r.at += int64(n)
	return n, err
}

func heap() uint64 {
	s := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtimemetrics.Read(s)
	return s[0].Value.Uint64()
}

// watchHeap samples the heap until the function that it returns is called, which gives the most that there was.
func watchHeap() func() uint64 {
	var most uint64
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				most = max(most, heap())
			}
		}
	})
	return func() uint64 {
		close(stop)
		done.Wait()
		return most
	}
}

func sortedKeys(labels map[model.Key]model.Labels) []model.Key {
	keys := make([]model.Key, 0, len(labels))
	for k := range labels {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, model.Key.Compare)
	return keys
}
