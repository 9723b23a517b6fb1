package progress

import (
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
