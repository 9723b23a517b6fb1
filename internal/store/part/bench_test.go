package part

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/text"
)

// avalanche makes series as the load generator of that name does: 14 labels, gauges of random integers below
// 100, all scraped together.
func avalanche(metrics, series, rows int) []oneSeries {
	r := rand.New(rand.NewPCG(1, 1))
	var all []oneSeries
	times := make([]int64, rows)
	for i := range times {
		times[i] = 1700000000e9 + int64(i)*60e9
	}
	for m := range metrics {
		for s := range series {
			pairs := []string{"__name__", fmt.Sprintf("avalanche_metric_mmmmm_0_%d", m), "job", "avalanche", "instance", "10.0.0.1:9001", "cluster", "test-cluster",
				"series_id", fmt.Sprint(s), "cycle_id", "0", "replica", "prometheus-0"}
			for k := range 7 {
				pairs = append(pairs, fmt.Sprintf("label_key_kkkkk_%d", k), fmt.Sprintf("label_val_vvvvv_%d", k))
			}
			l := model.LabelsOf(pairs...)
			one := oneSeries{tenant: "t", key: l.Key(testSeed, model.Metrics), labels: l, rows: model.Rows{Times: times}}
			for range rows {
				one.rows.Values = append(one.rows.Values, math.Float64bits(float64(r.IntN(100))))
			}
			all = append(all, one)
		}
	}
	return sortSeries(all)
}

// writeAll writes a part and returns its size in bytes.
func writeAll(b testing.TB, all []oneSeries, o WriterOptions) int64 {
	w := NewWriter(discard{}, o)
	for i := range all {
		l := all[i].labels
		if !o.Labels {
			l = nil
		}
		// Not Must: looking up its caller costs as much as writing a row.
		if err := w.Series(all[i].tenant, all[i].key, l); err != nil {
			b.Fatal(err)
		}
		if err := w.Rows(&model.SeriesRows{Samples: all[i].rows}); err != nil {
			b.Fatal(err)
		}
	}
	_, size, err := w.Finish()
	parttest.Must(b, err)
	return size
}

// benchShapes are the parts of BenchmarkWrite and BenchmarkRead.
var benchShapes = []struct {
	name   string
	series int
	rows   int
	o      WriterOptions
}{
	{"120rows/fast", 5000, 120, testOptions(false, Fast)},
	{"120rows/dense", 5000, 120, testOptions(false, Dense)},
	{"120rows/block", 5000, 120, testOptions(true, Dense)},
	{"1row/fast", 100000, 1, testOptions(false, Fast)},
	{"labels/fast", 50000, 0, testOptions(true, Fast)},
	{"labels/dense", 50000, 0, testOptions(true, Dense)},
}

// reportRates reports what each of the rows, or each of the series without rows, took since before.
func reportRates(b *testing.B, series, rows int, before time.Duration) {
	b.ReportMetric(float64(alloctest.CPU(b)-before)/float64(series*max(rows, 1)*b.N), "cpu-ns/row")
	b.ReportMetric(float64(series*b.N)/b.Elapsed().Seconds(), "series/s")
	b.ReportMetric(float64(series*rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkWrite(b *testing.B) {
	for _, c := range benchShapes {
		b.Run(c.name, func(b *testing.B) {
			all := avalanche(c.series/10, 10, c.rows)
			before := alloctest.CPU(b)
			b.ReportAllocs()
			var size int64
			for b.Loop() {
				size = writeAll(b, all, c.o)
			}
			b.ReportMetric(float64(size)/float64(len(all)*max(c.rows, 1)), "B/row")
			reportRates(b, len(all), c.rows, before)
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for _, c := range benchShapes {
		b.Run(c.name, func(b *testing.B) {
			all := avalanche(c.series/10, 10, c.rows)
			r, _ := writePart(b, all, c.o)
			before := alloctest.CPU(b)
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range All(context.Background(), r.Stream()) {
					parttest.Must(b, err)
				}
			}
			reportRates(b, len(all), c.rows, before)
		})
	}
}

// TestSizes keeps an eye on the bytes of the shapes that matter.
func TestSizes(t *testing.T) {
	racetest.SkipSerial(t)
	report := func(name string, all []oneSeries, o WriterOptions, most float64) {
		r, _ := writePart(t, all, o)
		n := make([]int, len(sections))
		for _, s := range sections {
			for i := range r.Index(s) {
				entries, err := r.Entries(context.Background(), nil, s, i)
				parttest.Must(t, err)
				for k := range entries {
					n[s.Number] += int(entries[k].Addr.Len)
				}
			}
		}
		per := float64(max(1, int(r.Meta().Samples)))
		got := float64(r.Size()) / per
		t.Logf("%s: %d bytes, %.4f a sample; a series: keys %.2f labels %.2f postings %.2f samples %.2f", name, r.Size(), got,
			float64(n[0])/float64(len(all)), float64(n[1])/float64(len(all)), float64(n[2])/float64(len(all)), float64(n[3])/float64(len(all)))
		if got > most {
			t.Errorf("%s: %.4f bytes a sample, should be at most %.4f", name, got, most)
		}
	}
	all := avalanche(2000, 10, 120)
	report("block of gauges", all, testOptions(true, Dense), 0.99)
	report("data part of gauges, fast", all, testOptions(false, Fast), 1.04)
	report("block of a day of gauges", avalanche(200, 10, 1440), testOptions(true, Dense), 0.86)
	for i := range all {
		all[i].rows.Times, all[i].rows.Values = all[i].rows.Times[:1], all[i].rows.Values[:1]
	}
	report("one row a series, fast", all, testOptions(false, Fast), 13)
	report("labels only, fast", all, testOptions(true, Fast), 1000)
}

// BenchmarkMerge joins eight young parts of one row a series, as the background does first, and then eight of
// the results.
func BenchmarkMerge(b *testing.B) {
	for _, rows := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("8x%drows", rows), func(b *testing.B) {
			all := avalanche(5000, 10, 8*rows)
			var parts []*Reader
			for i := range 8 {
				young := make([]oneSeries, len(all))
				for k := range all {
					young[k] = all[k]
					young[k].rows = model.Rows{Times: all[k].rows.Times[i*rows : (i+1)*rows], Values: all[k].rows.Values[i*rows : (i+1)*rows]}
				}
				r, _ := writePart(b, young, testOptions(false, Fast))
				parts = append(parts, r)
			}
			before := alloctest.CPU(b)
			b.ReportAllocs()
			for b.Loop() {
				mergeAll(b, parts)
			}
			b.ReportMetric(float64(len(all)*8*rows*b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(alloctest.CPU(b)-before)/float64(len(all)*8*rows*b.N), "cpu-ns/row")
		})
	}
}

func mergeAll(b *testing.B, parts []*Reader) {
	var inputs []Stream
	for _, r := range parts {
		inputs = append(inputs, r.Stream())
	}
	w := NewWriter(discard{}, testOptions(false, Fast))
	err := Merge(context.Background(), inputs, func(tenant string, k model.Key, l model.Labels, rows *model.SeriesRows, _ []text.Series) error {
		if err := w.Series(tenant, k, l); err != nil {
			return err
		}
		return w.Rows(rows)
	}, MergeOptions{})
	parttest.Must(b, err)
	_, _, err = w.Finish()
	parttest.Must(b, err)
}

func BenchmarkSelect(b *testing.B) {
	all := avalanche(2000, 10, 0)
	r, _ := writePart(b, all, testOptions(true, Fast))
	for _, ms := range [][]model.Matcher{
		{{Name: "__name__", Op: model.MatchEqual, Value: "avalanche_metric_mmmmm_0_77"}},
		{{Name: "__name__", Op: model.MatchEqual, Value: "avalanche_metric_mmmmm_0_77"}, {Name: "series_id", Op: model.MatchNotEqual, Value: "3"}, {Name: "job", Op: model.MatchEqual, Value: "avalanche"}},
		{{Name: "series_id", Op: model.MatchEqual, Value: "3"}},
	} {
		b.Run(fmt.Sprintf("%d matchers, first %s", len(ms), ms[0].Name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Select(context.Background(), "t", ms); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
