package evict

// extstoreMemory is the share of the capacity that memory holds in front of the disk.
const extstoreMemory = 0.01

// extstore is memcached with extstore: a small LRU in memory, from whose end everything goes to disk, and a
// disk that evicts its oldest page, read or not. A page of the real one is a ten-thousandth of the disk, so
// values leave one by one here. What is read from the disk stays there: it returns to memory once in 2,000
// hits.
type extstore struct {
	Ledger
	memory, disk       list
	where              []tier
	capacity, inMemory int64
}

// tier says where a key is.
type tier uint8

const (
	absent tier = iota
	ghost       // absent, but its key is remembered
	inMemory
	onDisk
)

func newExtstore(in Input) *extstore {
	l := newLinks(len(in.Sizes))
	return &extstore{
		Ledger: newLedger(in.Sizes), memory: newList(l, in.Sizes), disk: newList(l, in.Sizes),
		where: make([]tier, len(in.Sizes)), capacity: in.Capacity, inMemory: int64(extstoreMemory * float64(in.Capacity)),
	}
}

func (c *extstore) Has(key uint32) bool { return c.where[key] != absent }

func (c *extstore) Get(key, _ uint32) bool {
	switch c.where[key] {
	case absent:
		return false
	case inMemory:
		c.memory.remove(key)
		c.memory.push(key)
	}
	c.read[key] = true
	return true
}

func (c *extstore) Put(key, _ uint32, _ bool) {
	if c.size(key) > c.capacity {
		return
	}
	c.enter(key)
	c.where[key] = inMemory
	c.memory.push(key)
	for c.memory.bytes > c.inMemory {
		last := uint32(c.memory.tail)
		c.memory.remove(last)
		c.where[last] = onDisk
		c.disk.push(last)
		c.Written += c.size(last)
	}
	for c.disk.bytes > c.capacity-c.inMemory {
		last := uint32(c.disk.tail)
		c.disk.remove(last)
		c.where[last] = absent
		c.evict(last)
	}
}
