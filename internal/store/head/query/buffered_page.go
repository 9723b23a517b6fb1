package query

import (
	"context"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/rows"
)

// bufferedPage is a group of chunks of a run. It has no filter: buffers are small, and lines are gathered
// only when they are read.
type bufferedPage struct {
	of *bufferedText

	mu     sync.Mutex
	chunks []bufferedChunk // more may be added while some are read
}

// bufferedChunk is the rows [from, to) of a run.
type bufferedChunk struct {
	from, to int
	held     int64 // bytes of quota
}

// add adds a chunk and returns its index.
func (p *bufferedPage) add(from, to int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chunks = append(p.chunks, bufferedChunk{from: from, to: to})
	return len(p.chunks) - 1
}

var _ model.TextPage = (*bufferedPage)(nil)

// Skip returns false: there is no filter.
func (p *bufferedPage) Skip(context.Context) (bool, error) { return false, nil }

// ReadText gathers the rows of a chunk. The caller owns the result. The quota is charged once per chunk.
func (p *bufferedPage) ReadText(ctx context.Context, index int, want model.TextWant, dst *model.TextRows) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, size := p.of, 0
	from, to, err := p.charge(index, func(from, to int) int64 {
		if want&model.WantLines != 0 {
			size = t.rows.LineBytes(from, to)
		}
		return int64(size)
	})
	if err != nil {
		return err
	}
	buf := make([]byte, 0, size)
	var g rows.Gatherer
	if err := g.Gather(dst, t.rows, from, to, t.blobs, want, buf); err != nil {
		return t.named(err)
	}
	return nil
}

// charge charges the memory of reading a chunk, unless that has been done, and returns its rows.
func (p *bufferedPage) charge(index int, takes func(from, to int) int64) (from, to int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.chunks[index]
	if n := takes(c.from, c.to); c.held < n {
		if err := p.of.req.Quota.TakeBytes(n - c.held); err != nil {
			return 0, 0, err
		}
		c.held = n
	}
	return c.from, c.to, nil
}

// Release returns the charged memory to the quota.
func (p *bufferedPage) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sum int64
	for i := range p.chunks {
		sum += p.chunks[i].held
		p.chunks[i].held = 0
	}
	_ = p.of.req.Quota.TakeBytes(-sum) // giving back does not fail
}
