package part

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/samples"
)

// traced makes series with exemplars as instrumented servers give them: a trace and a span, a few an hour.
func traced(series, each int) []oneSeries {
	r := rand.New(rand.NewPCG(3, 1))
	var all []oneSeries
	for i := range series {
		l := model.LabelsOf("__name__", "http_request_duration_seconds_bucket", "le", fmt.Sprint(i), "job", "api")
		one := oneSeries{tenant: "t", key: l.Key(testSeed, model.Metrics), labels: l}
		at := int64(1700000000e9)
		for range each {
			at += r.Int64N(300e3) * 1e6
			e := model.Exemplar{
				Value:  math.Float64bits(math.Round(1e6*math.Exp(r.NormFloat64()-5)) / 1e6),
				Labels: model.LabelsOf("trace_id", fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()), "span_id", fmt.Sprintf("%016x", r.Uint64())),
			}
			one.exemplars.AppendBlob(at, model.KindExemplar, model.AppendExemplar(nil, &e), 0)
		}
		all = append(all, one)
	}
	return sortSeries(all)
}

// TestExemplarSizes: 24 bytes of each are random, written as 48 digits.
func TestExemplarSizes(t *testing.T) {
	for _, c := range []struct {
		level Compression
		most  float64
	}{{Fast, 72}, {Dense, 42}} {
		all := traced(1000, 5)
		r, _ := writePart(t, all, testOptions(false, c.level))
		parttest.Must(t, Check(context.Background(), r))
		checkStream(t, r, all, false)
		size := 0
		for i := range r.Index(samples.ExemplarSection) {
			entries, err := r.Entries(context.Background(), nil, samples.ExemplarSection, i)
			parttest.Must(t, err)
			for k := range entries {
				size += int(entries[k].Addr.Len)
			}
		}
		got := float64(size) / float64(r.Meta().Exemplars)
		t.Logf("%.1f bytes an exemplar, of %d as bytes", got, len(all[0].exemplars.Blob(0)))
		if got > c.most {
			t.Errorf("%.1f bytes, should be at most %.1f", got, c.most)
		}
	}
}

func TestWriterRefusesExemplars(t *testing.T) {
	good := model.AppendExemplar(nil, &model.Exemplar{Labels: model.LabelsOf("a", "b")})
	for name, fill := range map[string]func(r *model.Rows){
		"cut short":    func(r *model.Rows) { r.AppendBlob(1, model.KindExemplar, good[:7], 0) },
		"wrong labels": func(r *model.Rows) { r.AppendBlob(1, model.KindExemplar, good[:len(good)-1], 0) },
		"a float":      func(r *model.Rows) { r.Append(1, 2, 0) },
		"a histogram":  func(r *model.Rows) { r.AppendBlob(1, model.KindHistogram, good, 0) },
		"with a start": func(r *model.Rows) { r.AppendBlob(1, model.KindExemplar, good, 5) },
		"disorder": func(r *model.Rows) {
			r.AppendBlob(2, model.KindExemplar, good, 0)
			r.AppendBlob(1, model.KindExemplar, good, 0)
		},
		"beyond bytes": func(r *model.Rows) { r.AppendBlob(1, model.KindExemplar, good, 0); r.Bytes = r.Bytes[:3] },
		"ragged kinds": func(r *model.Rows) { r.AppendBlob(1, model.KindExemplar, good, 0); r.Kinds = append(r.Kinds, 0) },
		"huge labels": func(r *model.Rows) {
			e := model.Exemplar{Labels: model.LabelsOf("a", string(make([]byte, model.MaxLabelBytes)))}
			r.AppendBlob(1, model.KindExemplar, model.AppendExemplar(nil, &e), 0)
		},
	} {
		w := NewWriter(io.Discard, testOptions(false, Fast))
		parttest.Must(t, w.Series("t", model.Key{}, nil))
		var rows model.SeriesRows
		fill(&rows.Exemplars)
		if err := w.Rows(&rows); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestExemplarsAcrossPages: exemplars of one time go on in the next page in the order in which they came.
func TestExemplarsAcrossPages(t *testing.T) {
	var all []oneSeries
	for i := range 3 {
		one := oneSeries{tenant: "t", key: model.Key{Hi: uint64(i) * 20000}}
		for k := range 3000 {
			e := model.Exemplar{Value: uint64(k * 7919 % 3000), Labels: model.LabelsOf("id", fmt.Sprint(k%100), "text", "some more to fill pages")}
			one.exemplars.AppendBlob(int64(k/1000), model.KindExemplar, model.AppendExemplar(nil, &e), 0)
		}
		all = append(all, one)
	}
	r, _ := writePart(t, all, testOptions(false, Fast))
	parttest.Must(t, Check(context.Background(), r))
	checkStream(t, r, all, false)
	one := model.TimeRange{Min: 1, Max: 1}
	c := r.RowsAt(context.Background(), model.Exemplars, one)
	for rank := range uint32(3) {
		checkRows(t, c, one, rank, &all[rank].exemplars)
	}
	pages, err := r.RankPages(context.Background(), nil, samples.ExemplarSection, file.Ranks{1}, &model.TimeRange{Min: 2, Max: 2})
	if err != nil || len(pages) == 0 || len(pages) > 4 {
		t.Fatalf("%v, %v", pages, err)
	}
}
