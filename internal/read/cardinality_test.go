package read

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/readtest"
	"github.com/shaledb/shale/internal/sketch"
)

func TestCardinality(t *testing.T) {
	m := readtest.NewMemory(0)
	rows := model.Rows{Times: []int64{1}, Values: []uint64{1}}
	for i := range 10 {
		l := model.LabelsOf("__name__", fmt.Sprint("m", i%3), "i", fmt.Sprint(i), "odd=", "x=y")
		m.Add("t", l.Key(1, model.Metrics), l, &rows)
	}
	q := New(Options{Sources: []Source{m}})
	req := &model.Request{
		Tenant: "t", Signal: model.Metrics, Range: model.Always(), LabelsCharged: true,
		Quota: &model.Quota{}, Cost: &model.Cost{},
	}
	got, err := q.Cardinality(context.Background(), req, "")
	if err != nil {
		t.Fatal(err)
	}
	if got.Series != 10 || got.Pairs() != 14 || got.Undercount() != 0 {
		t.Errorf("%d series, %d pairs, undercount %d", got.Series, got.Pairs(), got.Undercount())
	}
	for _, test := range []struct{ got, want any }{
		{got.SeriesByValue("__name__", 2), []sketch.Counted{{Name: "m0", Count: 4}, {Name: "m1", Count: 3}}},
		{got.SeriesByPair(2), []sketch.Counted{{Name: "odd==x=y", Count: 10}, {Name: "__name__=m0", Count: 4}}},
		{got.Labels(2, func(l *LabelCount) uint64 { return l.Values }), []LabelCount{{"i", 10, 10, 10, true}, {"__name__", 10, 3, 20, true}}},
		{got.Labels(1, func(l *LabelCount) uint64 { return l.ValueBytes }), []LabelCount{{"odd=", 10, 1, 30, true}}},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("got %+v, want %+v", test.got, test.want)
		}
	}
	// Of one name, and the same series from a source that counts labels itself.
	one, err := q.Cardinality(context.Background(), req, "i")
	if err != nil || one.Series != 10 || one.Pairs() != 10 {
		t.Errorf("%+v, %v", one, err)
	}
	counted, err := CountLabels(context.Background(), counter{}, req, "")
	if err != nil {
		t.Fatal(err)
	}
	changes := counted.Changes(got, "__name__", 2)
	if want := []Change{{"m0", 4, 100}, {"m1", 3, 0}}; !reflect.DeepEqual(changes, want) {
		t.Errorf("%+v", changes)
	}
	if changes := counted.LabelChanges(got, 1); !reflect.DeepEqual(changes, []Change{{"i", 10, 0}}) {
		t.Errorf("%+v", changes)
	}
	got.Release()
	one.Release()
	counted.Release()
	if req.Quota.Charged().Bytes() != 0 {
		t.Error("bytes stay charged")
	}
	req.Quota = &model.Quota{MaxBytes: 1500}
	if _, err := q.Cardinality(context.Background(), req, ""); !errors.Is(err, model.ErrLimit) {
		t.Errorf("beyond its quota: %v", err)
	}
}

// counter has a hundred series of one metric.
type counter struct{}

func (counter) LabelCounts(_ context.Context, _ *model.Request, _ string, emit func(name, value []byte, series uint64) error) (uint64, error) {
	for range 2 {
		if err := emit([]byte("__name__"), []byte("m0"), 50); err != nil {
			return 0, err
		}
	}
	return 100, nil
}

// A million different values take bounded memory.
func TestCardinalityIsBounded(t *testing.T) {
	q := &model.Quota{MaxBytes: 32 << 20}
	c := newCardinality(q)
	for i := range 300_000 {
		if err := c.add([]byte("id"), fmt.Append(nil, i), 1); err != nil {
			t.Fatal(err)
		}
		if err := c.add([]byte("app"), []byte("web"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if n, exact := c.Values("id"); exact || n < 280_000 || n > 320_000 {
		t.Errorf("%d values, exact: %v", n, exact)
	}
	web := c.SeriesByValue("app", 5)
	if len(web) != 1 || web[0].Count > 300_000 || web[0].Count+c.Undercount() < 300_000 || c.Undercount() > 12 {
		t.Errorf("%v, undercount %d", web, c.Undercount())
	}
	c.Release()
	if err := q.TakeBytes(q.MaxBytes); err != nil {
		t.Error("bytes stay charged: ", err)
	}
}
