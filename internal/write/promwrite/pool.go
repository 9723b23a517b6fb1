package promwrite

import (
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// maxPooled is the largest walker, in bytes, that returns to the pool, so that a huge request does not
// hold its memory forever. Prometheus's own requests decode to about 1 MiB.
const maxPooled = 4 << 20

// pools keeps the memory of requests for later ones.
type pools struct {
	walkers sync.Pool
}

func newPools() *pools {
	p := &pools{}
	p.walkers.New = func() any { return new(walker) }
	return p
}

func (p *pools) getWalker() *walker { return p.walkers.Get().(*walker) }

// putWalker returns a walker to the pool without its references to the request.
func (p *pools) putWalker(w *walker) {
	if w.memory() > maxPooled {
		return
	}
	w.decoded, w.batch, w.reserve, w.left, w.emptyExample = nil, nil, nil, nil, ""
	w.labels, w.one = model.LabelsBuilder{}, model.LabelsBuilder{}
	w.keys.Reset()
	w.election.start(nil, "", false)
	p.walkers.Put(w)
}
