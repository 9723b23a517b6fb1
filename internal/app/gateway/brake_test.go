package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/known"
	"github.com/shaledb/shale/internal/store/topics"
)

// braked returns a gateway of a topic with two partitions, with what the brake needs of it.
func braked(t *testing.T) *Gateway {
	o := Options{Epoch: topics.Epoch{Number: 1, Partitions: 2, Topic: "shale", Begins: []int64{0, 0}}, Connection: kafka.Connection{Brokers: []string{"127.0.0.1:1"}}, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)}
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
	use := func() { s.trickle.take("t", 1<<20, time.Now()) } // what may pass
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
		use()
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
	if want := (state.Partition{Epoch: 1, Number: 1}); len(b.covered) != 1 || b.covered[want] != 7 {
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
	s.trickle.take("t", 1<<20, time.Now())
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

// TestTrickle: few series of a tenant pass the brake, those of a burst at once, and so a request that is
// repeated is taken in the end. One tenant leaves room for others, and all together are bounded, too.
func TestTrickle(t *testing.T) {
	tr := newTrickle()
	now := time.Unix(1_700_000_000, 0)
	take := func(tenant string, n int) int {
		allowed, _ := tr.take(tenant, n, now)
		return allowed
	}
	burst := int(brakeTenantSeries * burst.Seconds())
	if n := take("a", burst-1); n != burst-1 {
		t.Errorf("%d of a burst pass", n)
	}
	left := 2 * burst
	tries := 0
	for ; left > 0 && tries < 100; tries++ {
		n := take("a", left)
		if tries == 0 && n != 1 || tries > 0 && n > 5*brakeTenantSeries {
			t.Errorf("%d pass in try %d", n, tries)
		}
		left -= n
		now = now.Add(5 * time.Second)
	}
	if want := 2*burst/(5*brakeTenantSeries) + 1; left > 0 || tries < want || tries > want+1 {
		t.Errorf("%d series are left after %d tries, want about %d", left, tries, want)
	}
	now = now.Add(time.Hour)
	sum := 0
	for i := range 10 {
		if n := take(fmt.Sprint(i), 1<<20); i == 3 && n != burst {
			t.Errorf("%d of the fourth tenant pass", n)
		} else {
			sum += n
		}
	}
	if sum != 4*burst {
		t.Errorf("%d series of all tenants pass", sum)
	}
}

// TestTrickleIsLimited: what passes the brake is subject to the usual limits, and is given back together with
// what it took of these if it cannot be appended.
func TestTrickleIsLimited(t *testing.T) {
	g := braked(t)
	s := g.series
	g.brake.use.Store(&kafka.Use{Share: 0.8, Setting: "retention.ms"})
	s.creation.rates = Rates{Of: func(string) int64 { return 2 }} // 120 at once
	s.most = func(string) int64 { return 1000 }
	active := func(n int64) {
		for p := range int32(2) {
			s.take(&state.Series{Partition: state.Partition{Epoch: 1, Number: p}, Active: map[string]int64{"t": n / 2}, Known: map[string]state.Filter{"t": state.NewFilter(1)}}, time.Now())
		}
	}
	active(10)
	made := uint64(0)
	batchOf := func(n int) *model.Batch {
		batch := &model.Batch{Tenant: "t", Signal: model.Metrics}
		for i := range n {
			made++
			batch.Labels.Append(uint32(i), model.LabelsOf("a", "b"))
			batch.EndSeries(model.Key{Hi: 1, Lo: made * 0x9e3779b97f4a7c15})
		}
		return batch
	}
	var named *model.LimitError
	over := func(what string, batch *model.Batch, want int, limit string) {
		t.Helper()
		refused := map[int]bool{}
		err := s.Over(t.Context(), batch, func(label int) {
			if refused[label] {
				t.Errorf("%s: %d is refused twice", what, label)
			}
			refused[label] = true
		})
		if len(refused) != want || (err != nil) != (want > 0) || errors.As(err, &named) && named.Limit != limit {
			t.Errorf("%s: %d are refused, %v", what, len(refused), err)
		}
	}
	first := batchOf(100)
	over("with room in both", first, 0, "")
	s.giveBack(first)
	over("it was given back", batchOf(110), 0, "")
	over("the rate of the tenant", batchOf(30), 20, "limits.tenant-new-series")
	over("both", batchOf(600), 600, "retention.ms")
	s.trickle, s.creation.rates = newTrickle(), Rates{}
	active(1000)
	over("the number of the tenant", batchOf(1000), 1000, "limits.tenant-series")
	if n, err := s.trickle.take("other", brakeTenantSeries*60, time.Now()); n < brakeTenantSeries*60 || err != nil {
		t.Errorf("what a limit refused leaves %d for another tenant: %v", n, err)
	}
	if n, _ := s.trickle.take("t", 1<<20, time.Now()); n != brakeTenantSeries*60 {
		t.Errorf("what a limit refused leaves %d for its tenant", n)
	}
	s.trickle = newTrickle()
	active(10)
	over("it has room again", batchOf(5), 0, "")
}

// TestBrakeFalls: a setting of which Kafka says nothing goes on to count, and the other one falls.
func TestBrakeFalls(t *testing.T) {
	b := braked(t).brake
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
		_, use := b.found(map[uint64]kafka.Uses{1: x.uses})
		if use.Share != x.share || use.Setting != x.setting || b.use.Load() != use || x.share > 0 && use.Topic != "shale" {
			t.Errorf("answer %d: %+v, want %v of %s", i, use, x.share, x.setting)
		}
	}
}

// brokers are a fake of Kafka. Each topic has the shares of the retention that the records of its partitions
// use, by offset.
type brokers map[string][][]float64

func (k brokers) Retention(_ context.Context, topic string) (kafka.Retention, error) {
	if k[topic] == nil {
		return kafka.Retention{}, kafka.ErrNoTopic
	}
	return kafka.Retention{Time: 48 * time.Hour}, nil
}

func (k brokers) Use(_ context.Context, topic string, _ kafka.Retention, from map[int32]int64, _ time.Time) (kafka.Uses, error) {
	use := kafka.Use{Setting: "retention.ms"}
	for p, offset := range from {
		if of := k[topic][p]; int(offset) < len(of) && of[offset] > use.Share {
			use.Share, use.Partition = of[offset], p
		}
	}
	return kafka.Uses{Time: &use, Bytes: &kafka.Use{}}, nil
}

func (brokers) Close() {}

// TestBrakeAsksTheBucket: before the brake refuses anything, and while it does, it asks the bucket how far it
// has the partitions, also those of earlier epochs. So it is right though the state topic says nothing.
func TestBrakeAsksTheBucket(t *testing.T) {
	g := braked(t)
	b := g.brake
	objects, err := bucketfs.New(vfs.NewMem(), "/b")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(t.Context(), objects, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ship := func(epoch uint64, partition int32, to uint64, closed bool) {
		t.Helper()
		node := topics.Node(partition)
		from := c.Covered(node, epoch).To + 1
		if _, err := c.Ship(t.Context(), catalog.Ship{Covered: []catalog.Coverage{{Node: node, Epoch: epoch, From: from, To: to, Closed: closed}}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	ages := []float64{0.95, 0.8, 0.7, 0.1}
	k := brokers{"shale": {ages, ages}}
	b.asker, b.ships = k, newShipLog(objects)
	want := func(what string, share float64, unknown float64) {
		t.Helper()
		if !b.read.IsZero() {
			b.read = b.read.Add(-time.Hour)
		}
		if _, err := b.check(t.Context()); err != nil && !errors.Is(err, kafka.ErrNoTopic) {
			t.Fatal(err)
		}
		if use := b.use.Load(); use.Share != share || float64(b.unknown()) != unknown {
			t.Errorf("%s: %+v, %d partitions are unknown, want %v and %v", what, use, b.unknown(), share, unknown)
		}
	}
	told := func(epoch uint64, partition int32, next int64) {
		b.take(&state.Covered{Partition: state.Partition{Epoch: epoch, Number: partition}, Next: next})
	}
	want("nothing has ever been shipped", 0.95, 2)
	ship(1, 0, 2, false)
	want("one partition was, of which no one has told", 0.95, 1)
	ship(1, 1, 1, false)
	want("the other one, too", 0.8, 0)
	told(1, 1, 3)
	want("an ingester has told", 0.7, 0)
	ages[2] = 0.92 // the state topic says nothing more, and time passes
	ship(1, 0, 4, false)
	want("the bucket has more than was told", 0.1, 0)
	if _, err := b.check(t.Context()); err != nil || b.use.Load().Share != 0.1 {
		t.Errorf("what the bucket has said is forgotten: %+v, %v", b.use.Load(), err)
	}

	ages[3] = 0.8
	k["shale-2"] = [][]float64{{0.3}, {}, {}, {}}
	e := topics.Epoch{Number: 2, Topic: "shale-2", Partitions: 4, Begins: make([]int64, 4), BeforeEnds: []int64{4, 4}}
	b.follow(e)
	want("an earlier epoch is not closed, and the next one not begun with", 0.8, 4)
	if use := b.use.Load(); use.Topic != "shale" || use.Partition != 1 {
		t.Errorf("the text names %+v", use)
	}
	delete(k, "shale") // a broker has not read yet which topics there are
	want("one broker does not know the topic", 0.8, 4)
	k["shale"] = [][]float64{ages, ages}
	b.gone[1] = b.gone[1].Add(-goneAfter)
	want("it knows the topic again", 0.8, 4)
	delete(k, "shale")
	want("later, one does not know it once more", 0.8, 4)
	k["shale"] = [][]float64{ages, ages}
	ship(1, 1, 4, true)
	want("it is closed", 0.3, 4)
	told(2, 0, 1)
	want("the next one goes on", 0, 3)

	delete(k, "shale-2")
	k["shale-3"] = [][]float64{{0.4}, {}, {}, {}}
	b.follow(topics.Epoch{Number: 3, Topic: "shale-3", Partitions: 4, Begins: make([]int64, 4), BeforeEnds: []int64{9, 9, 9, 9}})
	want("a topic is not there before the bucket has all of it", 0.4, 7)
	b.gone[2] = b.gone[2].Add(-goneAfter)
	want("it is gone", 0.4, 4)
	k["shale-4"] = [][]float64{{0.5}, {}, {}, {}}
	b.follow(topics.Epoch{Number: 4, Topic: "shale-4", Partitions: 4, Begins: make([]int64, 4), BeforeLost: true})
	k["shale-3"] = [][]float64{{0.99}, {}, {}, {}}
	want("an epoch is given up", 0.5, 4)
}
