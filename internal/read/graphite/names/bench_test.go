package names

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache/ram"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/nametree"
	"github.com/shaledb/shale/internal/store/part"
)

var benchNames = flag.Int("names", 200_000, "the number of names of benchmarks")

// partSource is a part in a file, whose pages come through a cache.
type partSource struct {
	open func(ctx context.Context) (*part.Reader, error)
}

func (s *partSource) Names(ctx context.Context, req *model.Request) ([]model.NameSet, func(), error) {
	r, err := s.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	return []model.NameSet{r.Charged(req.Quota.TakeBytes).Names(req.Tenant)}, func() {}, nil
}

// writePart writes a part with a series for each name and returns its file. Dense ones have a tree.
func writePart(b testing.TB, all []string, level part.Compression) *os.File {
	f, err := os.Create(b.TempDir() + fmt.Sprint("/part", level))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	const seed = 7
	type series struct {
		key model.Key
		at  int
	}
	order := make([]series, len(all))
	var l model.Labels
	for i, name := range all {
		l = model.AppendName(l[:0], []byte(name))
		order[i] = series{l.Key(seed, model.Metrics), i}
	}
	slices.SortFunc(order, func(a, b series) int { return a.key.Compare(b.key) })
	w := part.NewWriter(f, part.WriterOptions{Signal: model.Metrics, Seed: seed, Labels: true, Level: level})
	rows := &model.SeriesRows{Samples: model.Rows{Times: []int64{1e18}, Values: []uint64{0}}}
	for _, s := range order {
		l = model.AppendName(l[:0], []byte(all[s.at]))
		if err := w.Series("t", s.key, l); err != nil {
			b.Fatal(err)
		}
		if err := w.Rows(rows); err != nil {
			b.Fatal(err)
		}
	}
	if _, _, err := w.Finish(); err != nil {
		b.Fatal(err)
	}
	return f
}

func openCached(b testing.TB, f *os.File, bytes int64) *partSource {
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	c, err := ram.New(ram.Options{MaxBytes: bytes, Registerer: prometheus.NewRegistry()})
	if err != nil {
		b.Fatal(err)
	}
	hits := new(atomic.Int64)
	r, err := part.Open(context.Background(), f, info.Size())
	if err != nil {
		b.Fatal(err)
	}
	return &partSource{func(context.Context) (*part.Reader, error) {
		return r.Bind(part.NewCachedPages(c, "o", part.FetchFile(f, reads), hits)), nil
	}}
}

// reads counts the pages that are read from files.
var reads = new(atomic.Int64)

// benchStored finds each of the globs in a part that has its tree, cold: nothing but the footer is known.
func benchStored(b *testing.B, f *os.File, names []string, run func(b *testing.B, finder *Finder, name string)) {
	var times []time.Duration
	for _, name := range names {
		b.Run("stored/"+name, func(b *testing.B) {
			before, n := reads.Load(), 0
			for b.Loop() {
				b.StopTimer()
				finder := New(Options{From: openCached(b, f, 1<<30), Registerer: prometheus.NewRegistry()})
				b.StartTimer()
				began := time.Now()
				run(b, finder, name)
				times = append(times, time.Since(began))
				b.StopTimer()
				_ = finder.Close()
				n++
				b.StartTimer()
			}
			b.ReportMetric(float64(reads.Load()-before)/float64(n), "pages")
		})
	}
	if len(times) > 0 {
		slices.Sort(times)
		b.Log(fmt.Sprint("stored tree, cold, all globs: p50 ", times[len(times)/2], ", p99 ", times[len(times)*99/100], ", worst ", times[len(times)-1]))
	}
}

func newBenchFinder(b *testing.B, s Source) *Finder {
	f := New(Options{From: s, Registerer: prometheus.NewRegistry()})
	b.Cleanup(func() { _ = f.Close() })
	return f
}

// BenchmarkFind finds each of the mixed globs in one part, cold (nothing is cached) and warm. Run it with
// -names=10000000.
func BenchmarkFind(b *testing.B) {
	all := fleet(*benchNames)
	globs := fleetGlobs(all)
	f, stored := writePart(b, all, part.Fast), writePart(b, all, part.Dense)
	all = nil
	info, _ := f.Stat()
	b.Logf("%d bytes of part", info.Size())
	q := func() *Query { return &Query{Tenant: "t", Range: always, Quota: &model.Quota{MaxBytes: 1 << 30}} }
	run := func(b *testing.B, finder *Finder, glob string) int {
		got, err := finder.Find(context.Background(), q(), glob)
		if err != nil {
			b.Fatal(err)
		}
		return len(got)
	}
	names := make([]string, 0, len(globs))
	for name := range globs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.Run("cold/"+name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				finder := New(Options{From: openCached(b, f, 1<<30), Registerer: prometheus.NewRegistry()})
				b.StartTimer()
				run(b, finder, globs[name])
				b.StopTimer()
				_ = finder.Close() // so that it makes no index meanwhile
				b.StartTimer()
			}
		})
	}
	benchStored(b, stored, names, func(b *testing.B, finder *Finder, name string) { run(b, finder, globs[name]) })
	src := openCached(b, f, 1<<30)
	finder := newBenchFinder(b, src)
	sets, _, _ := src.Names(context.Background(), q().request())
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			if _, err := finder.build(context.Background(), q().request(), sets[0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	made, err := sets[0].Made(context.Background(), func(ctx context.Context) ([]byte, error) { return finder.build(ctx, q().request(), sets[0]) })
	if err != nil {
		b.Fatal(err)
	}
	x, err := nametree.Open(made)
	if err != nil {
		b.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	b.Logf("%d names, %d labels, %d states, %d bytes of index; %.1f s, %d bytes allocated", x.Names, x.Labels, x.States, len(made),
		time.Since(began).Seconds(), after.TotalAlloc-before.TotalAlloc)
	for _, name := range names {
		b.Run("warm/"+name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = run(b, finder, globs[name])
			}
			b.ReportMetric(float64(n), "matches")
		})
	}
	times := make([]time.Duration, 0, 20*len(names))
	for range 20 {
		for _, name := range names {
			began := time.Now()
			run(b, finder, globs[name])
			times = append(times, time.Since(began))
		}
	}
	slices.Sort(times)
	b.Log(fmt.Sprint("warm, all globs in turn: p50 ", times[len(times)/2], ", p99 ", times[len(times)*99/100], ", worst ", times[len(times)-1]))
}
