package write

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
)

// TestKindsAreCountedApart pushes floats, histograms and exemplars, good and bad, of a good series, of
// a series whose labels are not allowed, and of a series that occurs twice.
func TestKindsAreCountedApart(t *testing.T) {
	s := &store{}
	reg := prometheus.NewRegistry()
	p := New(Options{
		Seed: seed, Head: s, Journal: s, Limits: Limits{MaxAge: time.Hour, MaxFuture: time.Minute},
		Now: func() int64 { return now }, Registerer: reg,
	})
	b := p.Batch("t", model.Metrics)
	good, bad := []string{"__name__", "good"}, []string{"__name__", "\xff"}
	b.Source = wire{good, bad, good}
	histogram := model.AppendHistogram(nil, &model.Histogram{Count: 3})
	exemplar := model.AppendExemplar(nil, &model.Exemplar{Value: 5})
	ages := []time.Duration{0, 2 * time.Hour, -time.Hour}
	for _, pairs := range [][]string{good, bad} {
		for _, age := range ages {
			at := now - int64(age)
			b.Samples.Append(at, math.Float64bits(1), 0)
			b.Samples.AppendBlob(at+1, model.KindHistogram, histogram, at-5)
			b.Samples.AppendBlob(at+2, model.KindHistogram, histogram, 0)
			for i := range 3 {
				b.Exemplars.AppendBlob(at+int64(i), model.KindExemplar, exemplar, 0)
			}
		}
		kb := model.KeyBuilder{Seed: seed, Signal: model.Metrics}
		kb.Label([]byte(pairs[0]), []byte(pairs[1]))
		b.EndSeries(kb.Key(onWire(pairs)))
	}
	b.Exemplars.AppendBlob(now, model.KindExemplar, exemplar, 0)
	b.EndSeries(b.Keys[0])

	res, err := p.Push(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Counts{Samples: 1, Histograms: 2, Exemplars: 4}); res.ByKind != want || res.Stored != 7 {
		t.Errorf("stored %d: %+v", res.Stored, res.ByKind)
	}
	left := map[string]Counts{}
	for _, r := range res.Rejected {
		left[r.Reason] = r.ByKind
		if r.Samples != r.ByKind.Total() {
			t.Errorf("%s: %d of %+v", r.Reason, r.Samples, r.ByKind)
		}
	}
	one := Counts{Samples: 1, Histograms: 2, Exemplars: 3}
	if diff := cmp.Diff(map[string]Counts{ReasonTooOld: one, ReasonTooNew: one, ReasonLabels: {Samples: 3, Histograms: 6, Exemplars: 9}}, left); diff != "" {
		t.Error(diff)
	}
	got := s.batches[0]
	if n := got.Samples.Len(); n != 3 || got.Samples.Kind(1) != model.KindHistogram || string(got.Samples.Blob(2)) != string(histogram) ||
		got.Samples.Start(1) != now-5 || got.Exemplars.Len() != 4 || string(got.Exemplars.Blob(3)) != string(exemplar) {
		t.Errorf("stored %+v", got)
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP shale_write_samples_total Samples acknowledged as durable, by kind: float, histogram.
# TYPE shale_write_samples_total counter
shale_write_samples_total{kind="float"} 1
shale_write_samples_total{kind="histogram"} 2
# HELP shale_write_exemplars_total Exemplars acknowledged as durable.
# TYPE shale_write_exemplars_total counter
shale_write_exemplars_total 4
# HELP shale_write_discarded_samples_total Samples received but not stored, by reason.
# TYPE shale_write_discarded_samples_total counter
shale_write_discarded_samples_total{reason="invalid_labels"} 9
shale_write_discarded_samples_total{reason="too_far_in_future"} 3
shale_write_discarded_samples_total{reason="too_old"} 3
# HELP shale_write_discarded_exemplars_total Exemplars received but not stored, by reason.
# TYPE shale_write_discarded_exemplars_total counter
shale_write_discarded_exemplars_total{reason="invalid_labels"} 9
shale_write_discarded_exemplars_total{reason="too_far_in_future"} 3
shale_write_discarded_exemplars_total{reason="too_old"} 3
`), "shale_write_samples_total", "shale_write_exemplars_total", "shale_write_discarded_samples_total", "shale_write_discarded_exemplars_total"); err != nil {
		t.Error(err)
	}
}

// TestExemplarsAlone makes a batch without any sample durable.
func TestExemplarsAlone(t *testing.T) {
	s := &store{}
	p := newPath(s, Limits{})
	b := p.Batch("t", model.Metrics)
	b.Source = wire{{"__name__", "m"}}
	b.Exemplars.AppendBlob(now, model.KindExemplar, model.AppendExemplar(nil, &model.Exemplar{}), 0)
	b.EndSeries(model.LabelsOf("__name__", "m").Key(seed, model.Metrics))
	if res, err := p.Push(context.Background(), b); err != nil || res.ByKind.Exemplars != 1 || len(s.batches) != 1 {
		t.Fatal(res, err)
	}
}

func TestRejections(t *testing.T) {
	var a, b Rejections
	for i := range 5 {
		a.Add("x", Counts{Samples: 1}, func() string { return fmt.Sprint("a", i) })
	}
	b.Add("y", Counts{Exemplars: 2}, func() string { return strings.Repeat("b", 1000) })
	b.Add("x", Counts{Histograms: 3}, func() string { return "c" })
	b.Merge(a)
	want := Rejections{
		{Reason: "y", Samples: 2, ByKind: Counts{Exemplars: 2}, Examples: []string{strings.Repeat("b", 500)}},
		{Reason: "x", Samples: 8, ByKind: Counts{Samples: 5, Histograms: 3}, Examples: []string{"c", "a0", "a1"}},
	}
	if diff := cmp.Diff(want, b); diff != "" {
		t.Error(diff)
	}
	if n := b.Counts(); n != (Counts{Samples: 5, Histograms: 3, Exemplars: 2}) || n.String() != "5 samples, 3 histograms, 2 exemplars" || (Counts{}).String() != "0 samples" {
		t.Errorf("%+v %s", n, n)
	}
}

func TestLimitsCheck(t *testing.T) {
	for _, c := range []struct {
		l  Limits
		ok bool
	}{
		{Limits{}, true},
		{Limits{MaxNameBytes: model.MaxLabelBytes, MaxValueBytes: model.MaxLabelBytes, MaxBuckets: MostBuckets}, true},
		{Limits{MaxNameBytes: model.MaxLabelBytes + 1}, false},
		{Limits{MaxValueBytes: model.MaxLabelBytes + 1}, false},
		{Limits{MaxBuckets: MostBuckets + 1}, false},
		{Limits{MaxBuckets: -1}, false},
	} {
		if err := c.l.Check(); (err == nil) != c.ok || err != nil && !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%+v: %v", c.l, err)
		}
	}
	if n := (&Limits{}).Buckets(); n != MostBuckets {
		t.Errorf("%d buckets", n)
	}
}

// TestLabelsOfManyMegabytes: each label is within its limit, but all of them together are not.
func TestLabelsOfManyMegabytes(t *testing.T) {
	s := &store{}
	p := newPath(s, Limits{})
	long := []string{"__name__", "m"}
	for i := range 3 {
		long = append(long, fmt.Sprint("l", i), strings.Repeat("x", 400_000))
	}
	res, err := p.Push(context.Background(), send(p, wire{long, {"__name__", "ok"}}, 0, 0))
	if err != nil || res.Stored != 1 || len(res.Rejected) != 1 || res.Rejected[0].Reason != ReasonLabelsTooLong {
		t.Fatal(res, err)
	}
}

// payer is a LabelSource that lets a push take so many bytes.
type payer struct {
	wire
	left int64
}

func (p *payer) Reserve(n int64) error {
	if p.left -= n; p.left < 0 {
		return &Refused{Status: 503, Limit: "limits.inflight-bytes", Text: "full"}
	}
	return nil
}

func TestLabelsArePaidFor(t *testing.T) {
	s := &store{}
	p := newPath(s, Limits{})
	var w wire
	for i := range 1000 {
		w = append(w, []string{"__name__", strings.Repeat("x", 1000), "i", fmt.Sprint(i)})
	}
	for left, ok := range map[int64]bool{900 << 10: false, 3 << 19: true} {
		b := send(p, w, make([]time.Duration, len(w))...)
		b.Source = &payer{w, left}
		_, err := p.Push(context.Background(), b)
		var r *Refused
		if (err == nil) != ok || err != nil && (!errors.As(err, &r) || r.Limit != "limits.inflight-bytes") {
			t.Errorf("%d bytes: %v", left, err)
		}
	}
}

func TestExpect(t *testing.T) {
	p := newPath(&store{}, Limits{MaxInflightBytes: 100})
	g, err := p.Admit(context.Background(), "t", 60)
	if err != nil {
		t.Fatal(err)
	}
	var r *Refused
	if err := g.Expect(41); !errors.As(err, &r) || r.Status != 413 {
		t.Errorf("what would never fit: %v", err)
	}
	if err := g.Expect(40); err != nil {
		t.Error(err)
	}
	other, err := p.Admit(context.Background(), "t", 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Expect(31); !errors.As(err, &r) || r.Status != 503 || r.RetryAfter == 0 {
		t.Errorf("what does not fit now: %v", err)
	}
	other.Release()
	g.Release()
	if n := p.budget.inUse(); n != 0 {
		t.Errorf("%d bytes are still in use", n)
	}
}
