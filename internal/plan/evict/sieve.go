package evict

// sieve is a FIFO with a bit for each key that was used, and a hand that moves from the oldest key to the
// newest, clears bits, and evicts the first key without one.
type sieve struct {
	lru
	used []bool
	hand int32
}

func newSieve(in Input) *sieve {
	return &sieve{lru: *newLRU(in), used: make([]bool, len(in.Sizes)), hand: none}
}

func (c *sieve) Get(key, _ uint32) bool {
	if !c.in[key] {
		return false
	}
	c.read[key], c.used[key] = true, true
	return true
}

func (c *sieve) Put(key, _ uint32, _ bool) {
	size := c.size(key)
	if size > c.capacity {
		return
	}
	for c.list.bytes+size > c.capacity {
		c.evictOne()
	}
	c.enter(key)
	c.Written += size
	c.in[key], c.used[key] = true, false
	c.list.push(key)
}

func (c *sieve) evictOne() {
	at := c.hand
	if at == none {
		at = c.list.tail
	}
	for c.used[at] {
		c.used[at] = false
		if at = c.list.toward[at]; at == none {
			at = c.list.tail
		}
	}
	c.hand = c.list.toward[at]
	key := uint32(at)
	c.list.remove(key)
	c.in[key] = false
	c.evict(key)
}
