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
type buffer struct {
	bytes []byte
	// reached is how much of the capacity may be filled: what has been reserved.
	reached int
}

// resize makes the buffer n bytes long. What is in it is arbitrary.
func (b *buffer) resize(n int) { b.bytes = slices.Grow(b.bytes[:0], n)[:n] }

// reach gives the buffer room for n bytes in all, and no more than that if it has to be allocated.
func (b *buffer) reach(n int) {
	if cap(b.bytes) < n {
		b.bytes = append(make([]byte, 0, n), b.bytes...)
	}
	b.reached = n
}

func (p *pools) takeBuffer() *buffer { return p.buffers.Get().(*buffer) }

func (p *pools) giveBuffer(b *buffer) {
	if cap(b.bytes) <= maxPooled {
		p.buffers.Put(b)
	}
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
