package gateway

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/known"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestSeries: new series of a tenant at its limit are refused. Those that an ingester knows, or that this
// gateway has announced, are not, and neither are those of partitions that no ingester has counted.
func TestSeries(t *testing.T) {
	a, err := known.NewAnnouncer(known.AnnouncerOptions{Bytes: 1 << 20, Topic: known.Topic{Epoch: 1, Partitions: 2}, Refresh: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := newSeries(&Options{
		Epoch: topics.Epoch{Number: 1, Partitions: 2}, SeriesOf: func(string) int64 { return 4 }, Registerer: prometheus.NewRegistry(),
	}, a)
	key := func(n uint64) model.Key { return model.Key{Hi: n, Lo: n << 8} } // all of partition 0
	refused := func(keys ...model.Key) (all []model.Key) {
		t.Helper()
		b := &model.Batch{Tenant: "t", Signal: model.Metrics}
		for _, k := range keys {
			b.Labels.Append(uint32(len(b.Keys)), model.LabelsOf("a", "b"))
			b.EndSeries(k)
		}
		err := s.Over(t.Context(), b, func(label int) { all = append(all, b.Keys[b.Labels.Series[label]]) })
		var limit *model.LimitError
		if (len(all) > 0) != errors.As(err, &limit) {
			t.Errorf("%d series are refused: %v", len(all), err)
		}
		return all
	}
	if all := refused(key(9)); len(all) > 0 {
		t.Error("before any count")
	}
	f := state.NewFilter(4)
	f.Add(key(1).Lo)
	now := time.Now()
	count := func(epoch uint64, partition int32, n int64) {
		s.take(&state.Series{Partition: state.Partition{Epoch: epoch, Number: partition}, Active: map[string]int64{"t": n}, Known: map[string]state.Filter{"t": f}}, now)
	}
	count(2, 0, 100) // another epoch
	count(1, 0, 3)
	if all := refused(key(9)); len(all) > 0 {
		t.Error("below the limit")
	}
	count(1, 0, 4)
	a.Announced(a.Moment(), "t", model.Metrics, []model.Key{key(2)})
	if all := refused(key(1), key(2), key(9), model.Key{Lo: 1}); len(all) != 1 || all[0] != key(9) {
		t.Errorf("%v are refused, expected one", all)
	}
	count(1, 0, 2)
	if all := refused(key(9)); len(all) > 0 {
		t.Error("below the limit again")
	}
	count(1, 0, 4)
	count(1, 1, 4)
	other := model.Key{Lo: 9<<8 | 1}
	s.forget(state.Partition{Epoch: 2})
	if all := refused(key(9), other); len(all) != 2 {
		t.Errorf("%v are refused after another epoch's partition was forgotten", all)
	}
	s.forget(state.Partition{Epoch: 1})
	if all := refused(key(9), other); len(all) != 1 || all[0] != other {
		t.Errorf("%v are refused, expected that of the partition that was not forgotten", all)
	}
	if s.active["t"] != 4 {
		t.Errorf("%d series are active", s.active["t"])
	}
	now = now.Add(countAge)
	count(1, 0, 4)
	s.expire(now)
	if all := refused(key(9), other); len(all) != 2 {
		t.Errorf("%v are refused by counts of the last minutes", all)
	}
	s.expire(now.Add(time.Second))
	if all := refused(key(9), other); len(all) != 1 || all[0] != key(9) {
		t.Errorf("%v are refused, expected that of the partition that is still counted", all)
	}
}

// TestUnlisted: series of a tenant that ingesters do not list pass, and are counted.
func TestUnlisted(t *testing.T) {
	a, err := known.NewAnnouncer(known.AnnouncerOptions{Bytes: 1 << 20, Topic: known.Topic{Epoch: 1, Partitions: 1}, Refresh: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := newSeries(&Options{
		Epoch: topics.Epoch{Number: 1, Partitions: 1}, SeriesOf: func(string) int64 { return 4 }, Registerer: prometheus.NewRegistry(),
	}, a)
	s.take(&state.Series{Partition: state.Partition{Epoch: 1}, Active: map[string]int64{"t": 200_000}}, time.Now())
	b := &model.Batch{Tenant: "t", Signal: model.Metrics}
	b.Labels.Append(0, model.LabelsOf("a", "b"))
	b.EndSeries(model.Key{Hi: 1, Lo: 1})
	err = s.Over(t.Context(), b, func(int) { t.Error("a series is refused that may be known") })
	if n := testutil.ToFloat64(s.unlisted); err != nil || n != 1 {
		t.Errorf("%v series are counted, %v", n, err)
	}
}
