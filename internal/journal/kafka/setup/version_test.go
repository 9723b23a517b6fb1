package setup

import (
	"errors"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestFollowNeedsVersion: while programs run that do not know topics that follow others, none is recorded,
// and the topic before is not sealed: there are no brokers to ask.
func TestFollowNeedsVersion(t *testing.T) {
	first := topics.Epoch{Number: 1, Topic: "a", ID: "x", Partitions: 1, Begins: []int64{0}}
	for v := topics.VersionRows; v < topics.VersionLeaders; v++ {
		p := &place{epochs: []topics.Epoch{first}, version: v}
		err := p.begin(t.Context(), &report{}, topics.Epoch{Topic: "b", ID: "y", Partitions: 2, Begins: []int64{0, 0}})
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "needs journal-version 3") {
			t.Errorf("journal-version %d: %v", v, err)
		}
	}
}
