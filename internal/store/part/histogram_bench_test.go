package part

import (
	"context"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/samples"
)

// latencies makes series of native histograms as a server gives them: durations around some milliseconds, of
// which a Poisson number falls between two scrapes. Buckets appear when they are first hit.
func latencies(series, rows int, perScrape float64, float bool) []oneSeries {
	r := rand.New(rand.NewPCG(5, 5))
	var all []oneSeries
	for i := range series {
		l := model.LabelsOf("__name__", "http_request_duration_seconds", "job", "api", "handler", string(rune('a'+i%26)), "instance", string(rune('a'+i/26)))
		one := oneSeries{tenant: "t", key: l.Key(testSeed, model.Metrics), labels: l}
		median := 0.002 * math.Exp(r.NormFloat64())
		counts := map[int]uint64{}
		count, sum := uint64(0), 0.0
		observe := func(n int) {
			for range n {
				v := median * math.Exp(0.4*r.NormFloat64())
				counts[int(math.Ceil(math.Log2(v)*4))]++
				count, sum = count+1, sum+v
			}
		}
		observe(2000 + r.IntN(5000))
		for k := range rows {
			observe(int(perScrape + math.Sqrt(perScrape)*r.NormFloat64() + 0.5))
			h := growing(counts, count, sum, float)
			one.rows.AppendBlob(1700000000e9+int64(k)*15e9, model.KindHistogram, model.AppendHistogram(nil, h), 0)
		}
		all = append(all, one)
	}
	return sortSeries(all)
}

// growing makes a histogram of schema 2.
func growing(counts map[int]uint64, count uint64, sum float64, float bool) *model.Histogram {
	h := &model.Histogram{Schema: 2, Float: float, ZeroThreshold: math.Float64bits(0x1p-128), Count: count, Sum: math.Float64bits(sum)}
	var at []int
	for k := range counts {
		at = append(at, k)
	}
	sort.Ints(at)
	last := uint64(0)
	for i, k := range at {
		if n := len(h.PositiveSpans); i > 0 && at[i-1] == k-1 {
			h.PositiveSpans[n-1].Length++
		} else {
			gap := k
			if i > 0 {
				gap = k - at[i-1] - 1
			}
			h.PositiveSpans = append(h.PositiveSpans, model.HistogramSpan{Offset: int32(gap), Length: 1})
		}
		if float {
			h.Positive = append(h.Positive, math.Float64bits(float64(counts[k])))
		} else {
			h.Positive = append(h.Positive, counts[k]-last)
		}
		last = counts[k]
	}
	if float {
		h.Count = math.Float64bits(float64(count))
	}
	return h
}

// TestHistogramSizes keeps an eye on the bytes of histograms. A page of a block has two hours of a few
// series, one of a young part one row of each.
func TestHistogramSizes(t *testing.T) {
	racetest.SkipSerial(t)
	for _, c := range []struct {
		name         string
		series, rows int
		perScrape    float64
		float        bool
		level        Compression
		most         float64
	}{
		{"block, two hours, 150 observations a scrape", 20, 480, 150, false, Dense, 15.5},
		{"the same, fast", 20, 480, 150, false, Fast, 15.5},
		{"two hours, 5 observations a scrape", 20, 480, 5, false, Dense, 10},
		{"floats of whole numbers", 20, 480, 150, true, Dense, 17},
		{"young, one row", 500, 1, 150, false, Fast, 43},
		{"young, one row, dense", 500, 1, 150, false, Dense, 39},
		{"four rows", 500, 4, 150, false, Fast, 28.5},
		{"eight rows", 500, 8, 150, false, Fast, 26.5},
		{"twenty rows", 500, 20, 150, false, Fast, 21.5},
	} {
		all := latencies(c.series, c.rows, c.perScrape, c.float)
		r, _ := writePart(t, all, testOptions(false, c.level))
		size, blobs, buckets := 0, 0, 0
		var h model.Histogram
		for i := range all {
			blobs += len(all[i].rows.Bytes)
			parttest.Must(t, h.Parse(all[i].rows.Blob(all[i].rows.Len()-1)))
			buckets += len(h.Positive)
		}
		for i := range r.Index(samples.Section) {
			entries, err := r.Entries(context.Background(), nil, samples.Section, i)
			parttest.Must(t, err)
			for k := range entries {
				size += int(entries[k].Addr.Len)
			}
		}
		n := float64(c.series * c.rows)
		got := float64(size) / n
		t.Logf("%s: %.1f bytes a histogram of %.1f buckets, which has %.1f as bytes", c.name, got, float64(buckets)/float64(c.series), float64(blobs)/n)
		if got > c.most {
			t.Errorf("%s: %.1f bytes, should be at most %.1f", c.name, got, c.most)
		}
	}
}

func BenchmarkHistograms(b *testing.B) {
	for _, c := range []struct {
		name         string
		series, rows int
		level        Compression
	}{{"480rows/dense", 20, 480, Dense}, {"8rows/fast", 500, 8, Fast}, {"1row/fast", 5000, 1, Fast}} {
		all := latencies(c.series, c.rows, 150, false)
		per := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.series*c.rows), "ns/row")
		}
		b.Run("write/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				writeAll(b, all, testOptions(false, c.level))
			}
			per(b)
		})
		r, _ := writePart(b, all, testOptions(false, c.level))
		b.Run("read/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range All(context.Background(), r.Stream()) {
					parttest.Must(b, err)
				}
			}
			per(b)
		})
	}
}
