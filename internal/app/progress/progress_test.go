package progress

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// rig is a bucket with epochs, and a log that knows the first one.
type rig struct {
	t   *testing.T
	b   bucket.Bucket
	all []topics.Epoch
	log *Log
}

func newRig(t *testing.T) *rig {
	t.Helper()
	b, err := bucketfs.New(vfs.NewMem(), "/b")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, b: b}
	r.add(topics.Epoch{Topic: "a", Partitions: 1})
	c, err := catalog.Open(t.Context(), b, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.log = &Log{o: Options{Bucket: b, Catalog: c, Ask: time.Minute}, epochs: r.all}
	r.log.running, r.log.stop = context.WithCancel(t.Context())
	return r
}

// add records the next epoch.
func (r *rig) add(e topics.Epoch) {
	r.t.Helper()
	e.ID, e.Begins = e.Topic, make([]int64, e.Partitions)
	e, err := topics.Add(r.t.Context(), r.b, r.all, e)
	if err != nil {
		r.t.Fatal(err)
	}
	r.all = append(r.all, e)
}

// TestLater: a process that slept while two topics followed knows both after one question.
func TestLater(t *testing.T) {
	r := newRig(t)
	r.add(topics.Epoch{Topic: "b", Partitions: 2, BeforeEnds: []int64{0}})
	r.add(topics.Epoch{Topic: "c", Partitions: 4, BeforeEnds: []int64{0, 0}})
	if err := r.log.later(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.log.epochs) != 3 {
		t.Errorf("3 epochs are recorded, and it knows %d", len(r.log.epochs))
	}
}

// TestJournals: closed partitions and those of a topic that was given up are named, and need no holder.
func TestJournals(t *testing.T) {
	r := newRig(t)
	r.add(topics.Epoch{Topic: "b", Partitions: 1, BeforeEnds: []int64{2}})
	r.add(topics.Epoch{Topic: "c", Partitions: 2, BeforeLost: true})
	s := catalog.Ship{Covered: []catalog.Coverage{{Node: topics.Node(0), Epoch: 1, From: 1, To: 2, Closed: true}}}
	if _, err := r.log.o.Catalog.Ship(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.log.later(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := r.log.Journals(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if lost := r.log.Lost(); len(lost) != 1 || lost[0].Skip != topics.Lost(&catalog.Coverage{Node: topics.Node(0), Epoch: 2}) {
		t.Errorf("these are lost: %+v", lost)
	}
	gone := topics.Lost(&catalog.Coverage{Node: topics.Node(0), Epoch: 2})
	s = catalog.Ship{Covered: []catalog.Coverage{{Node: topics.Node(0), Epoch: 2, From: 1, To: 0, Closed: true}}, Skipped: []catalog.Skip{gone}}
	if _, err := r.log.o.Catalog.Ship(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	if lost, recorded := r.log.Lost(), r.log.o.Catalog.GivenUp(); len(lost) > 0 || len(recorded) != 1 || recorded[0].Skip != gone {
		t.Errorf("once it is recorded, these are lost: %+v, and these recorded: %+v", lost, recorded)
	}
	var closed []bool
	for _, x := range all {
		closed = append(closed, x.Closed)
		if x.Closed == (x.Unknown != nil) {
			t.Errorf("%+v: Kafka was not asked", x)
		}
	}
	if len(closed) != 4 || !closed[0] || !closed[1] || closed[2] || closed[3] || all[0].Covered != 2 {
		t.Errorf("got %+v", all)
	}
}

// brokers answer a question with what a function returns.
type brokers func() (int64, error)

func (b brokers) Ends(_ context.Context, _ string, _ int32) (map[int32]int64, error) {
	end, err := b()
	return map[int32]int64{0: end}, err
}

func (brokers) Close() {}

// TestOwnAnswer: a query that must see everything uses the answer to its own question, although one that was
// sent before is answered at the same time. Once the log is closed, no question begins.
func TestOwnAnswer(t *testing.T) {
	r := newRig(t)
	away := errors.New("brokers are away")
	asked, hold, answered := make(chan struct{}), make(chan struct{}), make(chan error)
	r.log.client = brokers(func() (int64, error) {
		close(asked)
		<-hold
		return 1, nil
	})
	go func() { answered <- r.log.ask(t.Context()) }()
	<-asked
	r.log.client = brokers(func() (int64, error) { return 0, away })
	q, err := r.log.refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	close(hold)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if !errors.Is(q.failed, away) || !errors.Is(r.log.failed, away) || len(q.ends) > 0 {
		t.Errorf("the question got %+v; the log says %v", q, r.log.failed)
	}
	all, err := r.log.Journals(t.Context(), true)
	if err != nil || !errors.Is(all[0].Unknown, away) {
		t.Errorf("a query that must see everything: %+v, %v", all, err)
	}
	if all, err = r.log.Journals(t.Context(), false); err != nil || all[0].End != 1 || all[0].Unknown != nil {
		t.Errorf("another query: %+v, %v", all, err)
	}
	r.log.Close()
	if _, err := r.log.Journals(t.Context(), true); !errors.Is(err, model.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
