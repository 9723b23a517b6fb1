package evict

// s3fifoSmall is the share of the small queue.
const s3fifoSmall = 0.1

// s3fifo is S3-FIFO as published: a small queue for what is new, a main queue with reinsertion for what was
// used more than once there, and ghosts of what left the small queue. It counts touches, not queries.
type s3fifo struct {
	Ledger
	small, main list
	// ghosts are the keys without values that left the small queue, as many bytes of them as the main queue has
	// room for.
	ghosts list
	where  []tier // inMemory is the small queue, onDisk the main one
	used   []uint8

	capacity int64
}

func newS3FIFO(in Input) *s3fifo {
	l := newLinks(len(in.Sizes))
	return &s3fifo{
		Ledger: newLedger(in.Sizes), small: newList(l, in.Sizes), main: newList(l, in.Sizes),
		ghosts: newList(l, in.Sizes), where: make([]tier, len(in.Sizes)), used: make([]uint8, len(in.Sizes)), capacity: in.Capacity,
	}
}

func (c *s3fifo) Has(key uint32) bool { return c.where[key] > ghost }

func (c *s3fifo) Get(key, _ uint32) bool {
	if !c.Has(key) {
		return false
	}
	c.read[key] = true
	c.used[key] = min(c.used[key]+1, 3)
	return true
}

func (c *s3fifo) Put(key, _ uint32, _ bool) {
	size := c.size(key)
	if size > c.capacity {
		return
	}
	c.enter(key)
	c.Written += size
	c.used[key] = 0
	for c.small.bytes+c.main.bytes+size > c.capacity {
		if float64(c.small.bytes) >= s3fifoSmall*float64(c.capacity) || c.main.head == none {
			c.leaveSmall()
		} else {
			c.leaveMain()
		}
	}
	if c.where[key] == ghost {
		c.ghosts.remove(key)
		c.where[key] = onDisk
		c.main.push(key)
		return
	}
	c.where[key] = inMemory
	c.small.push(key)
}

func (c *s3fifo) leaveSmall() {
	key := uint32(c.small.tail)
	c.small.remove(key)
	if c.used[key] > 0 {
		c.used[key] = 0
		c.where[key] = onDisk
		c.main.push(key)
		return
	}
	c.where[key] = ghost
	c.ghosts.push(key)
	for float64(c.ghosts.bytes) > (1-s3fifoSmall)*float64(c.capacity) {
		last := uint32(c.ghosts.tail)
		c.ghosts.remove(last)
		c.where[last] = absent
	}
	c.evict(key)
}

func (c *s3fifo) leaveMain() {
	key := uint32(c.main.tail)
	c.main.remove(key)
	if c.used[key] > 0 {
		c.used[key]--
		c.Written += c.size(key)
		c.main.push(key)
		return
	}
	c.where[key] = absent
	c.evict(key)
}
