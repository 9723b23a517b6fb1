package progress

import (
	"sync"
	"testing"

	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestLostWhileDeletionsAreListed: queries ask for losses while the catalogue asks which epochs were given
// up. Each has a lock of its own, and asks the other one. A deadlock ends the test.
func TestLostWhileDeletionsAreListed(t *testing.T) {
	g := newRig(t)
	g.add(topics.Epoch{Topic: "c", Partitions: 1, BeforeLost: true})
	g.log.epochs = g.all
	d := &catalog.Deletion{Fences: []catalog.Fence{{Node: topics.Node(0), Epoch: 1, Seq: 10}}}
	var asked sync.WaitGroup
	asked.Go(func() {
		for range 20_000 {
			g.log.Lost()
		}
	})
	asked.Go(func() {
		for range 20_000 {
			g.log.o.Catalog.Passed(d, g.log.GivenUp)
		}
	})
	asked.Wait()
}
