package progress

import (
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestManyGivenUp: a warning stays short if a large topic is lost.
func TestManyGivenUp(t *testing.T) {
	var all []catalog.GivenUp
	for n := range int32(topics.MaxPartitions) {
		all = append(all, catalog.GivenUp{Skip: catalog.Skip{Node: topics.Node(n), Epoch: 1, From: 5, To: catalog.ToEnd, Why: "gone"}, Before: 1})
	}
	r := model.Request{Cost: new(model.Cost)}
	warn(&r, all, Accepted{})
	if got := r.Cost.Warnings.All(); len(got) != 1 || len(got[0]) > 1000 || !strings.Contains(got[0], "partition 0 of epoch 1, offsets from 4") || !strings.Contains(got[0], "and 4080 more") {
		t.Errorf("got %q", got)
	}
}

// TestNeighboursGivenUp: records that were given up one at a time are one warning, which others do not join.
func TestNeighboursGivenUp(t *testing.T) {
	lost := func(n int32, from, to uint64, why string, after, before int64) catalog.GivenUp {
		return catalog.GivenUp{Skip: catalog.Skip{Node: topics.Node(n), Epoch: 1, From: from, To: to, Why: why}, After: after, Before: before}
	}
	const minute = int64(60e9)
	var all []catalog.GivenUp
	for i := range int64(20) { // in turn, as they are found
		all = append(all, lost(0, uint64(5+i), uint64(5+i), "unreadable", (1+i)*minute, (2+i)*minute), lost(1, uint64(5+i), uint64(5+i), "unreadable", 0, (2+i)*minute))
	}
	all = append(all, lost(0, 25, 30, "deleted", minute, minute), lost(0, 32, 32, "deleted", minute, minute), lost(1, 25, catalog.ToEnd, "unreadable", minute, minute))
	r := model.Request{Cost: new(model.Cost), Range: model.Always()}
	warn(&r, all, Accepted{})
	want := []string{
		"partition 0 of epoch 1, offsets 4 to 23 were given up: unreadable; they came between 1970-01-01T00:01:00Z and 1970-01-01T00:21:00Z",
		"partition 0 of epoch 1, offsets 24 to 29 were given up: deleted; they came between 1970-01-01T00:01:00Z and 1970-01-01T00:01:00Z",
		"partition 0 of epoch 1, offsets 31 to 31 were given up: deleted; they came between 1970-01-01T00:01:00Z and 1970-01-01T00:01:00Z",
		"partition 1 of epoch 1, offsets from 4 were given up: unreadable; they came before 1970-01-01T00:21:00Z",
	}
	got := r.Cost.Warnings.All()
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], "the result may lack rows: ")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
	r = model.Request{Cost: new(model.Cost), Range: model.TimeRange{Min: 100 * minute, Max: 200 * minute}}
	if warn(&r, all, Accepted{}); len(r.Cost.Warnings.All()) != 0 {
		t.Errorf("got %q for later times", r.Cost.Warnings.All())
	}
}
