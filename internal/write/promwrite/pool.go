package promwrite

import (
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// maxPooled is the size in bytes beyond which a walker is left to the garbage collector, so that one huge request does
// not keep its memory for ever. Prometheus's own requests decode to about 1 MiB.
const maxPooled = 4 << 20

// pools keep the memory of requests for the next ones.
type pools struct {
	walkers sync.Pool
}

func newPools() *pools {
	p := &pools{}
	p.walkers.New = func() any { return new(walker) }
	return p
}

func (p *pools) takeWalker() *walker { return p.walkers.Get().(*walker) }

// giveWalker takes a walker back, without its hold on the request's memory.
func (p *pools) giveWalker(w *walker) {
	if w.memory() > maxPooled {
		return
	}
	w.decoded, w.batch, w.reserve, w.left, w.emptyExample = nil, nil, nil, nil, ""
	w.labels, w.one = model.LabelsBuilder{}, model.LabelsBuilder{}
	w.keys.Reset()
	p.walkers.Put(w)
}
