package gateway

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/known"
	"github.com/shaledb/shale/internal/store/topics"
)

// braked returns a gateway of a topic with two partitions, with what the brake needs of it.
func braked(t *testing.T) *Gateway {
	o := Options{Epoch: topics.Epoch{Number: 1, Partitions: 2, Topic: "shale"}, Connection: kafka.Connection{Brokers: []string{"127.0.0.1:1"}}, Registerer: prometheus.NewRegistry()}
	b, err := newBrake(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.asker.Close)
	a, err := known.NewAnnouncer(known.AnnouncerOptions{Bytes: 1 << 20, Topic: known.Topic{Epoch: 1, Partitions: 2}, Refresh: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	s := newSeries(&o, a)
	s.brake = b
	return &Gateway{o: o, series: s, announcer: a, brake: b}
}

// TestBrake: from three quarters of the retention on new series are refused, and known ones from nine tenths
// on. The text names the setting, its value and the partition.
func TestBrake(t *testing.T) {
	g := braked(t)
	a, b, s := g.announcer, g.brake, g.series
	f := state.NewFilter(1)
	f.Add(2 << 8)
	s.take(&state.Series{Partition: state.Partition{Epoch: 1}, Active: map[string]int64{"t": 1}, Known: map[string]state.Filter{"t": f}}, time.Now())
	a.Announced(a.Moment(), "t", model.Metrics, []model.Key{{Hi: 1, Lo: 1 << 8}})
	over := func() (refused []int, err error) {
		batch := &model.Batch{Tenant: "t", Signal: model.Metrics}
		for n := range uint64(4) { // the first one and the last one are new
			batch.Labels.Append(uint32(n), model.LabelsOf("a", "b"))
			batch.EndSeries(model.Key{Hi: n, Lo: n << 8})
		}
		err = s.Over(t.Context(), batch, func(label int) { refused = append(refused, label) })
		return refused, err
	}
	for _, x := range []struct {
		share float64
		new   bool
		all   bool
	}{{0.74, false, false}, {0.75, true, false}, {0.9, true, true}, {1.2, true, true}, {0, false, false}} {
		b.use.Store(&kafka.Use{Share: x.share, Partition: 1, Setting: "retention.ms", Value: "172800000 (48h0m0s)"})
		refused, err := over()
		if (err != nil) != x.new || x.new && (len(refused) != 2 || refused[0] != 0 || refused[1] != 3) {
			t.Errorf("at %v, %v are refused: %v", x.share, refused, err)
		}
		all := b.refused(refuseAll)
		if (all != nil) != x.all {
			t.Errorf("at %v, writes get %v", x.share, all)
		}
		var named *model.LimitError
		if x.all && (!errors.As(all, &named) || named.Limit != "retention.ms" || named.Tenant || !strings.Contains(named.Text, "partition 1") || !strings.Contains(named.Text, "172800000 (48h0m0s)")) {
			t.Errorf("the text is %v", all)
		}
	}
	for _, c := range []state.Covered{{Partition: state.Partition{Epoch: 1, Number: 1}, Next: 7}, {Partition: state.Partition{Epoch: 1, Number: 1}, Next: 5}, {Partition: state.Partition{Epoch: 2, Number: 0}}, {Partition: state.Partition{Epoch: 1, Number: 2}}} {
		b.take(&c)
	}
	if len(b.covered) != 1 || b.covered[1] != 7 {
		t.Errorf("covered are %v", b.covered)
	}
}

// TestBrakeLetsMissingLabelsPass: a partition that lacks labels gets them while the brake is on, until its
// ingester has counted its series again. Otherwise each would wait for the other.
func TestBrakeLetsMissingLabelsPass(t *testing.T) {
	g := braked(t)
	a, b, s := g.announcer, g.brake, g.series
	key := func(partition int32) model.Key {
		for n := uint64(1); ; n++ {
			if k := (model.Key{Hi: 1, Lo: n<<8 | n}); topics.PartitionOf(k, 2) == partition {
				return k
			}
		}
	}
	b.use.Store(&kafka.Use{Share: 0.8, Setting: "retention.ms"})
	want := func(what string, partition int32, passes bool) {
		t.Helper()
		batch := &model.Batch{Tenant: "t", Signal: model.Metrics}
		batch.Labels.Append(0, model.LabelsOf("a", "b"))
		batch.EndSeries(key(partition))
		if err := s.Over(t.Context(), batch, func(int) {}); (err == nil) != passes {
			t.Errorf("%s: a series of partition %d gets %v", what, partition, err)
		}
	}
	a.Announced(a.Moment(), "t", model.Metrics, []model.Key{key(0)})
	want("one that is known", 0, true)
	want("one that is not", 1, false)
	record, value := (&state.Forget{Partition: state.Partition{Epoch: 1}, Since: 5}).Encode()
	g.told(1, record, value, 7)
	want("labels are lacking", 0, true)
	want("elsewhere they are not", 1, false)
	s.expire(time.Now().Add(time.Hour))
	want("its ingester is away", 0, true)
	s.take(&state.Series{Partition: state.Partition{Epoch: 1}}, time.Now())
	want("it is counted again", 0, false)
}

// TestBrakeFalls: a setting of which Kafka says nothing goes on to count, and the other one falls.
func TestBrakeFalls(t *testing.T) {
	b := &brake{epoch: topics.Epoch{Number: 1, Partitions: 1, Topic: "shale"}, covered: map[int32]int64{}}
	b.use.Store(&kafka.Use{})
	said := func(share float64, setting string) *kafka.Use { return &kafka.Use{Share: share, Setting: setting} }
	const ms, bytes = "retention.ms", "retention.bytes"
	for i, x := range []struct {
		uses    kafka.Uses
		share   float64
		setting string
	}{
		{kafka.Uses{Time: said(0.8, ms)}, 0.8, ms}, // sizes are not to be had
		{kafka.Uses{Time: said(0.2, ms)}, 0.2, ms},
		{kafka.Uses{}, 0.2, ms},
		{kafka.Uses{Time: said(0.3, ms), Bytes: said(0.9, bytes)}, 0.9, bytes},
		{kafka.Uses{Time: said(0.1, ms)}, 0.9, bytes},
		{kafka.Uses{Bytes: said(0.05, bytes)}, 0.1, ms},
		{kafka.Uses{Time: said(0, ""), Bytes: said(0, "")}, 0, ""},
	} {
		_, use := b.found("shale", x.uses)
		if use.Share != x.share || use.Setting != x.setting || b.use.Load() != use || use.Topic != "shale" {
			t.Errorf("answer %d: %+v, want %v of %s", i, use, x.share, x.setting)
		}
	}
	if _, use := b.found("another", kafka.Uses{Time: said(1, ms)}); use.Share != 0 {
		t.Errorf("another topic counts: %+v", use)
	}
	b.found("shale", kafka.Uses{Bytes: said(0.8, bytes)})
	b.follow(topics.Epoch{Number: 2, Partitions: 1, Topic: "shale-2"})
	if _, use := b.found("shale-2", kafka.Uses{}); use.Share != 0 {
		t.Errorf("what was said of the topic before counts: %+v", use)
	}
}
