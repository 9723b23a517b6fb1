package read

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/readtest"
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
		Tenant: "t", Signal: model.Metrics, Range: model.Always(),
		Quota: &model.Quota{}, Cost: &model.Cost{},
	}
	got, err := q.Cardinality(context.Background(), req, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := &Cardinality{
		Series: 10, Pairs: 14,
		SeriesByMetric: []Counted{{"m0", 4}, {"m1", 3}},
		ValuesByName:   []Counted{{"i", 10}, {"__name__", 3}},
		BytesByName:    []Counted{{"odd=", 30}, {"__name__", 20}},
		SeriesByPair:   []Counted{{"odd==x=y", 10}, {"__name__=m0", 4}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	req.Quota = &model.Quota{MaxBytes: 3000}
	if _, err := q.Cardinality(context.Background(), req, 2); !errors.Is(err, model.ErrLimit) {
		t.Errorf("beyond its quota: %v", err)
	}
}
