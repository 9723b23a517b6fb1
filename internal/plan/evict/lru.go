package evict

// lru keeps the keys that were used last and admits all: memcached before its extstore.
type lru struct {
	Ledger
	list     list
	in       []bool
	capacity int64
}

func newLRU(in Input) *lru {
	return &lru{newLedger(in.Sizes), newList(newLinks(len(in.Sizes)), in.Sizes), make([]bool, len(in.Sizes)), in.Capacity}
}

func (c *lru) Has(key uint32) bool { return c.in[key] }

func (c *lru) Get(key, _ uint32) bool {
	if !c.in[key] {
		return false
	}
	c.read[key] = true
	c.list.remove(key)
	c.list.push(key)
	return true
}

func (c *lru) Put(key, _ uint32, _ bool) {
	if c.size(key) > c.capacity {
		return
	}
	c.enter(key)
	c.Written += c.size(key)
	c.in[key] = true
	c.list.push(key)
	for c.list.bytes > c.capacity {
		last := uint32(c.list.tail)
		c.list.remove(last)
		c.in[last] = false
		c.evict(last)
	}
}
