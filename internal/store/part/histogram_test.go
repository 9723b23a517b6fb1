package part

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/samples"
)

func TestHistogramsAcrossPages(t *testing.T) {
	racetest.SkipSerial(t)
	r := rand.New(rand.NewPCG(9, 9))
	var all []oneSeries
	for i, n := range []int{1, 2, 7, 8, 9, 100, 1000, 40000, 3} {
		// The courses go in steps of 11, so that the 100 rows have special values.
		rows := worldtest.Floats(r, n, 11*i%len(worldtest.Courses), 0)
		if i != 4 {
			worldtest.MixHistograms(r, &rows)
		}
		all = append(all, oneSeries{tenant: "t", key: model.Key{Hi: uint64(i)}, rows: rows})
	}
	for _, z := range []file.Sizes{formatSizes, tiny, tinyRuns} {
		for _, level := range []Compression{Fast, Dense} {
			reader, _ := writeSized(t, all, testOptions(false, level), z)
			parttest.Must(t, Check(context.Background(), reader))
			checkStream(t, reader, all, false)
		}
	}
}

// TestHugeHistograms: a series' histograms are split over pages by their bytes.
func TestHugeHistograms(t *testing.T) {
	racetest.SkipSerial(t)
	h := model.Histogram{PositiveSpans: []model.HistogramSpan{{Length: 300_000}}, Positive: make([]uint64, 300_000)}
	var rows model.Rows
	for i := range 40 {
		h.Positive[i] = 7
		rows.AppendBlob(int64(i), model.KindHistogram, model.AppendHistogram(nil, &h), 0)
	}
	all := []oneSeries{{tenant: "t", rows: rows}}
	r, _ := writePart(t, all, testOptions(false, Fast))
	parttest.Must(t, Check(context.Background(), r))
	checkStream(t, r, all, false)
}

// TestHostileHistograms: whatever the buckets hold, what the writer takes it can write. Here a number of ten
// bytes at the front makes all counts after it, of one byte each, differ from row to row by anything.
func TestHostileHistograms(t *testing.T) {
	racetest.SkipSerial(t)
	rnd := rand.New(rand.NewPCG(6, 6))
	for _, n := range []int{1, 2, 7, 8, 9, 40} {
		var rows model.Rows
		for k := range n {
			h := model.Histogram{PositiveSpans: []model.HistogramSpan{{Length: uint32(samples.MaxSeriesBytes/n - 60)}}}
			h.Positive = []uint64{rnd.Uint64()}
			for range h.PositiveSpans[0].Length - 1 {
				h.Positive = append(h.Positive, uint64(rnd.IntN(100)-50))
			}
			rows.AppendBlob(int64(k), model.KindHistogram, model.AppendHistogram(nil, &h), 0)
		}
		for _, level := range []Compression{Fast, Dense} {
			all := []oneSeries{{tenant: "t", rows: rows}}
			r, _ := writePart(t, all, testOptions(false, level))
			checkStream(t, r, all, false)
			for _, e := range r.Index(samples.Section) {
				if e.Rows != uint64(n) {
					t.Fatalf("%d rows, should be %d", e.Rows, n)
				}
			}
		}
	}
}

// TestHistogramAllocations: reading and writing histograms allocates by page and layout, not by row.
func TestHistogramAllocations(t *testing.T) {
	all := latencies(20, 400, 150, false)
	r, _ := writePart(t, all, testOptions(false, Fast))
	c := r.RowsAt(context.Background(), model.Samples, model.Always())
	var rows model.Rows
	alloctest.AtMost(t, 400, 3, func() {
		for rank := range uint32(len(all)) {
			rows.Reset()
			if c.AppendRows(rank, &rows) != nil || rows.Len() != 400 {
				t.Fatal("reading failed")
			}
		}
	})
	alloctest.AtMost(t, 600, 3, func() { writeAll(t, all, testOptions(false, Fast)) })
}

func TestWriterRefusesHistograms(t *testing.T) {
	good := model.Histogram{PositiveSpans: []model.HistogramSpan{{Length: 2}}, Positive: []uint64{1, 2}}
	for name, change := range map[string]func(h *model.Histogram) []byte{
		"cut short":      func(h *model.Histogram) []byte { return model.AppendHistogram(nil, h)[:9] },
		"positive spans": func(h *model.Histogram) []byte { h.PositiveSpans[0].Length++; return model.AppendHistogram(nil, h) },
		"negative spans": func(h *model.Histogram) []byte { h.Negative = []uint64{1}; return model.AppendHistogram(nil, h) },
		"too large": func(h *model.Histogram) []byte {
			h.Custom = make([]uint64, samples.MaxHistogramBytes/8)
			return model.AppendHistogram(nil, h)
		},
	} {
		h := good
		h.PositiveSpans = slices.Clone(h.PositiveSpans)
		w := NewWriter(io.Discard, testOptions(false, Fast))
		parttest.Must(t, w.Series("t", model.Key{}, nil))
		var rows model.SeriesRows
		rows.Samples.AppendBlob(1, model.KindHistogram, change(&h), 0)
		if err := w.Rows(&rows); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := NewWriter(io.Discard, testOptions(false, Fast))
	parttest.Must(t, w.Series("t", model.Key{}, nil))
	var rows model.SeriesRows
	rows.Samples.AppendBlob(1, model.KindExemplar, make([]byte, 8), 0)
	if err := w.Rows(&rows); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("an exemplar among samples: %v", err)
	}
}
