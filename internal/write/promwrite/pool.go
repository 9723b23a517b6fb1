package promwrite

import (
	"slices"
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// maxPooled is the size in bytes beyond which a buffer is left to the garbage collector, so that one huge request does
// not keep its memory for ever. Prometheus's own requests decode to about 1 MiB.
const maxPooled = 4 << 20

// pools keep the memory of requests for the next ones.
type pools struct {
	buffers, walkers sync.Pool
}

func newPools() *pools {
	p := &pools{}
	p.buffers.New = func() any { return new(buffer) }
	p.walkers.New = func() any { return new(walker) }
	return p
}

// buffer is a piece of reusable memory.
type buffer struct{ bytes []byte }

// resize makes the buffer n bytes long. What is in it is arbitrary.
func (b *buffer) resize(n int) { b.bytes = slices.Grow(b.bytes[:0], n)[:n] }

// extend makes the buffer n bytes longer.
func (b *buffer) extend(n int) { b.bytes = slices.Grow(b.bytes, n)[:len(b.bytes)+n] }

func (p *pools) takeBuffer() *buffer { return p.buffers.Get().(*buffer) }

func (p *pools) giveBuffer(b *buffer) {
	if cap(b.bytes) <= maxPooled {
		p.buffers.Put(b)
	}
}

func (p *pools) takeWalker() *walker { return p.walkers.Get().(*walker) }

// giveWalker takes a walker back, without its hold on the request's memory.
func (p *pools) giveWalker(w *walker) {
	if cap(w.arena) > maxPooled || cap(w.spans)*8 > maxPooled {
		return
	}
	w.decoded, w.batch, w.reserve, w.left = nil, nil, nil, nil
	w.labels, w.one = model.LabelsBuilder{}, model.LabelsBuilder{}
	w.keys.Reset()
	p.walkers.Put(w)
}
