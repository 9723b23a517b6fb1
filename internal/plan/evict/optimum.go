package evict

import "container/heap"

// Never is the next request for a key that is not asked for again.
const Never = ^uint32(0)

// optimum knows the future. It evicts the value whose next request is farthest away, and does not keep one
// that is farther than all others (Belady). With values of different sizes this is not the best possible, but
// a bound that can be reached: see the replay's Bound for one that cannot be exceeded.
type optimum struct {
	Ledger
	next     []uint32 // by request
	at       uint32   // the current request
	due      []uint32 // by key: its next request
	in       []bool
	far      farthest
	bytes    int64
	capacity int64
}

func newOptimum(in Input) *optimum {
	return &optimum{Ledger: newLedger(in.Sizes), next: in.Next, due: make([]uint32, len(in.Sizes)), in: make([]bool, len(in.Sizes)), capacity: in.Capacity}
}

// Follow tells the index and the key of the request that comes next.
func (c *optimum) Follow(i int, key uint32) {
	c.at = uint32(i)
	if c.in[key] {
		c.await(key)
	}
}

func (c *optimum) Has(key uint32) bool { return c.in[key] }

func (c *optimum) Get(key, _ uint32) bool {
	if c.in[key] {
		c.read[key] = true
	}
	return c.in[key]
}

func (c *optimum) Put(key, _ uint32, _ bool) {
	if c.next[c.at] == Never || c.size(key) > c.capacity {
		return
	}
	c.enter(key)
	c.in[key] = true
	c.bytes += c.size(key)
	c.Written += c.size(key)
	c.await(key)
	for c.bytes > c.capacity {
		top := heap.Pop(&c.far).(wait)
		if !c.in[top.key] || c.due[top.key] != top.due {
			continue
		}
		c.in[top.key] = false
		c.bytes -= c.size(top.key)
		if top.key == key { // it did not enter
			c.Written -= c.size(key)
			continue
		}
		c.evict(top.key)
	}
}

// await notes when the key of the current request is asked for next. What the heap had of it becomes stale.
func (c *optimum) await(key uint32) {
	c.due[key] = c.next[c.at]
	heap.Push(&c.far, wait{c.due[key], key})
	if len(c.far) > 4*len(c.in)+1024 {
		c.sweep()
	}
}

// sweep drops the stale items of the heap.
func (c *optimum) sweep() {
	live := c.far[:0]
	for _, w := range c.far {
		if c.in[w.key] && c.due[w.key] == w.due {
			live = append(live, w)
		}
	}
	c.far = live
	heap.Init(&c.far)
}

// wait is a key and its next request.
type wait struct{ due, key uint32 }

// farthest is a heap of keys, the farthest next request first.
type farthest []wait

func (h farthest) Len() int           { return len(h) }
func (h farthest) Less(i, j int) bool { return h[i].due > h[j].due }
func (h farthest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *farthest) Push(x any)        { *h = append(*h, x.(wait)) }
func (h *farthest) Pop() any {
	old := *h
	top := old[len(old)-1]
	*h = old[:len(old)-1]
	return top
}
