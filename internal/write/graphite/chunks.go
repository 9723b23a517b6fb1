package graphite

import "sync"

// smallChunk is the memory, in bytes, up to which any number of idle chunks may wait for the garbage collector in a
// pool; of larger ones maxLarge are kept.
const (
	smallChunk = 64 << 10
	maxLarge   = 8
)

// chunks keep the memory of chunks for the next rows.
type chunks struct {
	small sync.Pool
	mu    sync.Mutex
	large []*chunk
}

func (p *chunks) take() *chunk {
	p.mu.Lock()
	if n := len(p.large); n > 0 {
		c := p.large[n-1]
		p.large = p.large[:n-1]
		p.mu.Unlock()
		return c
	}
	p.mu.Unlock()
	if c, ok := p.small.Get().(*chunk); ok {
		return c
	}
	return new(chunk)
}

// give takes a chunk back, with the grants of its rows.
func (p *chunks) give(c *chunk) {
	c.reset()
	if cap(c.labels)+rowBytes/2*cap(c.keys) <= smallChunk {
		p.small.Put(c)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.large) < maxLarge {
		p.large = append(p.large, c)
	}
}
