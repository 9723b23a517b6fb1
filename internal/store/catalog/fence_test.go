package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
	del "github.com/shaledb/shale/internal/store/deletion"
)

// fenced is a deletion of everything of tenant a, at a place in the journal of node n1.
func fenced(request string, seq uint64) Deletion {
	return Deletion{
		Deletion: del.Deletion{Request: request, Signal: model.Metrics, Tenant: "a", Range: model.Always(), Matchers: []Matcher{{}}},
		Fences:   []Fence{{Node: "n1", Seq: seq}},
	}
}

// nothing is on its way to the bucket.
func nothing(*Deletion) bool { return false }

func shipped(id string, seqLo, seqHi uint64) Block {
	b := block(id, 0, 100)
	b.SeqLo, b.SeqHi, b.Sources = seqLo, seqHi, nil
	b.Complete()
	return b
}

// TestFences: sequence numbers decide which blocks a deletion concerns, not the order of commits. A block of
// another journal is one from before, unless it is committed later.
func TestFences(t *testing.T) {
	b := memory(t)
	c := open(t, b, nil)
	ship(t, c, shipped("before", 1, 9))
	other := shipped("other", 50, 60)
	other.Epoch, other.Sources = 7, nil
	other.Complete()
	ship(t, c, other)
	for request, seq := range map[string]uint64{"r1": 10} {
		if d, err := c.Delete(ctx, fenced(request, seq)); err != nil || d.Generation != 1 {
			t.Fatal(d, err)
		}
	}
	ship(t, c, shipped("late", 2, 8)) // it waited in the head
	ship(t, c, shipped("after", 11, 20))
	if d, err := c.Delete(ctx, fenced("r2", 30)); err != nil || d.Generation != 2 {
		t.Fatal(d, err)
	}
	ship(t, c, shipped("between", 21, 29))
	ship(t, c, shipped("last", 31, 40))
	next := shipped("next", 1, 5)
	next.Epoch, next.Sources = 8, nil
	next.Complete()
	ship(t, c, next)
	want := map[string][]uint64{"before": {1, 2}, "other": {1, 2}, "late": {1, 2}, "after": {2}, "between": {2}, "last": nil, "next": nil}
	for _, c := range []*Catalog{c, open(t, b, nil)} {
		for i := range c.Live() {
			x := &c.Live()[i]
			var got []uint64
			for _, d := range c.Deletions(x, "a") {
				got = append(got, d.Generation)
			}
			if !slices.Equal(got, want[x.ID]) {
				t.Errorf("%s: deletions %v, want %v", x.ID, got, want[x.ID])
			}
		}
	}
}

// TestDeleteOnce: a request that is repeated after its response was lost, by this process or by its next run,
// is one deletion.
func TestDeleteOnce(t *testing.T) {
	b := memory(t)
	c := open(t, b, nil)
	b.Add(fault.Rule{Kind: fault.LostAck, Op: fault.PutIfAbsent, Times: 1})
	if _, err := c.Delete(ctx, fenced("r", 1)); !errors.Is(err, model.ErrTransient) {
		t.Fatal(err)
	}
	for _, c := range []*Catalog{c, open(t, b, nil)} {
		for range 2 {
			if d, err := c.Delete(ctx, fenced("r", 1)); err != nil || d.Generation != 1 {
				t.Fatal(d.Generation, err)
			}
		}
	}
	if d, err := c.Delete(ctx, fenced("s", 2)); err != nil || d.Generation != 2 {
		t.Fatal(d.Generation, err)
	}
}

// TestCancel: a cancelled deletion hides nothing, in any process, and its generation is not assigned again.
func TestCancel(t *testing.T) {
	b, now := memory(t), int64(1000)
	c := open(t, b, &now)
	ship(t, c, shipped("x", 1, 9))
	for _, request := range []string{"r", "s"} {
		if _, err := c.Delete(ctx, fenced(request, 10)); err != nil {
			t.Fatal(err)
		}
	}
	before := c.CacheGeneration()
	for range 2 {
		for _, request := range []string{"s", "unknown"} {
			if err := c.CancelDeletion(ctx, "a", request); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c.CacheGeneration() == before {
		t.Error("caches are not told")
	}
	for _, c := range []*Catalog{c, open(t, b, nil)} {
		if got := c.Requests("a"); len(got) != 1 || got[0].Request != "r" || got[0].Left != 1 || got[0].Total != 1 {
			t.Fatalf("%+v", got)
		}
		if d, err := c.Delete(ctx, fenced("s", 10)); err != nil || d.Generation != 2 {
			t.Fatal("the request counts once more", d.Generation, err)
		}
	}
	if d, err := c.Delete(ctx, fenced("t", 10)); err != nil || d.Generation != 3 {
		t.Fatal(d.Generation, err)
	}
	now += 50
	held := CollectOptions{DeletionGrace: 10, Holds: func(d *Deletion) bool { return !c.Passed(d, nil) }}
	for range 2 {
		if done, err := c.Collect(ctx, held); err != nil || done.Deletions > 0 {
			t.Fatalf("orders are still to be read, and without the record they would count: %+v, %v", done, err)
		}
	}
	if d, err := open(t, b, nil).Delete(ctx, fenced("s", 10)); err != nil || d.Generation != 2 {
		t.Fatal("the cancelled request is made once more", d.Generation, err)
	}
	if _, err := c.Ship(ctx, Ship{Covered: []Coverage{{Node: "n1", From: c.Covered("n1", 0).To + 1, To: 10}}}, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the cancellation after its deletion
		if _, err := c.Collect(ctx, held); err != nil {
			t.Fatal(err)
		}
	}
	c = open(t, b, nil)
	if len(c.allDeletions()) != 2 || len(c.cancelled()) != 0 {
		t.Errorf("%d deletions, %d cancellations", len(c.allDeletions()), len(c.cancelled()))
	}
}

// TestMissedDeletion: a process finds a deletion that it only knows by a merge which has applied it.
func TestMissedDeletion(t *testing.T) {
	b := memory(t)
	c := open(t, b, nil)
	ship(t, c, shipped("x", 1, 9))
	if _, err := c.Delete(ctx, fenced("r", 10)); err != nil {
		t.Fatal(err)
	}
	m := shipped("m", 1, 9)
	m.OrderLo, m.OrderHi, m.Generation = 1, 99, 1
	merge(t, c, m, "x")
	kept := map[string][]byte{}
	for _, name := range []string{recordName(deletionID(1)), copyName(recordName(deletionID(1)))} {
		data, err := b.Get(ctx, name)
		if err == nil {
			err = b.Delete(ctx, name)
		}
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = data
	}
	late := open(t, b, nil)
	for name, data := range kept {
		put(t, b, name, string(data))
	}
	if len(late.DeletionsOf("a")) > 0 {
		t.Fatal("the listing has not missed the deletion")
	}
	if err := late.PollDeletions(ctx); err != nil || len(late.DeletionsOf("a")) != 1 {
		t.Errorf("%d deletions, %v", len(late.DeletionsOf("a")), err)
	}
}

// TestMarkClean: blocks without rows of a deletion count as done, as long as they are visible.
func TestMarkClean(t *testing.T) {
	b, now := memory(t), int64(1000)
	c := open(t, b, &now)
	ship(t, c, shipped("x", 1, 9))
	ship(t, c, shipped("y", 1, 8))
	for _, request := range []string{"r", "s"} {
		if _, err := c.Delete(ctx, fenced(request, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.MarkClean(ctx, []CleanBlock{{"x", 1}, {"y", 2}, {"gone", 2}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Catalog{c, open(t, b, nil)} {
		if got := c.Requests("a"); got[0].Left != 0 || got[1].Left != 1 || got[1].Total != 2 {
			t.Fatalf("%+v", got)
		}
	}
	m := shipped("m", 1, 9)
	m.OrderLo, m.OrderHi, m.Generation = 1, 99, 2
	merge(t, c, m, "x", "y")
	now += 1000
	for _, holds := range []func(*Deletion) bool{nil, func(*Deletion) bool { return true }} {
		if done, err := c.Collect(ctx, CollectOptions{DeletionGrace: 1, Holds: holds}); err != nil || done.Deletions > 0 {
			t.Fatalf("rows may be on their way: %+v, %v", done, err)
		}
	}
	for range 3 {
		if _, err := c.Collect(ctx, CollectOptions{Grace: 1, DeletionGrace: 1, Holds: nothing}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range objects(t, b) {
		if strings.HasPrefix(name, "catalog/clean-") || name == "catalog/delete-0000000000000001.json" {
			t.Errorf("%s is left", name)
		}
	}
}
