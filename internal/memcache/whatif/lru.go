package whatif

// The lists of a class. An item is in at most one of them.
const (
	absent = iota
	hot
	warm
	cold
	lists
)

// What memcached notes of an item: the first fetch makes it fetched, the next one active.
const (
	fetched = 1 << iota
	active
)

const (
	// turns is how many items the maintainer of memcached moves at most before it looks at another class.
	turns = 500
	none  = -1
)

// Limits are the settings of the LRU.
type Limits struct {
	// HotShare and WarmShare are the largest shares of a class in HOT and WARM, of its bytes.
	HotShare, WarmShare float64
	// HotAge and WarmAge are after how long an item leaves HOT and WARM, in times of the age of the oldest
	// item of COLD.
	HotAge, WarmAge float64
}

// Defaults are the settings of a server without options.
func Defaults() Limits { return Limits{0.2, 0.4, 0.2, 2} }

// node is an item in the lists of one size.
type node struct {
	prev, next int32
	// used and expires are in seconds; an item that does not expire has an expires of 0.
	used, expires int64
	bytes, chunk  int64
	class         uint8
	list          uint8
	flags         uint8
}

type list struct {
	head, tail int32
	bytes      int64
}

type class struct {
	lists [lists]list
	// page is how many bytes of a page chunks take, and pages is how many the class has.
	page, pages float64
	// used is what the chunks of the items of the sample take.
	used int64
}

// lru is memcached's memory at one size. Items are numbers, which the caller hands out.
type lru struct {
	limits  Limits
	classes [256]class
	nodes   []node
	// free are the pages that no class has.
	free float64
	// rate is the share of the keys that is simulated, and shares has that of each class: an item stands for
	// 1/share items.
	rate   float64
	shares *shares
	// left is called for each item that leaves, for whatever reason.
	left func(item int32)
	// evictions counts items that left for want of room.
	evictions int64
}

func newLRU(limits Limits, left func(int32)) *lru {
	s := &lru{limits: limits, rate: 1, left: left}
	for i := range s.classes {
		for l := range s.classes[i].lists {
			s.classes[i].lists[l] = list{head: none, tail: none}
		}
		s.classes[i].page = 1 << 20
	}
	return s
}

// grow makes room for the numbers of items below n.
func (s *lru) grow(n int) {
	for len(s.nodes) < n {
		s.nodes = append(s.nodes, node{prev: none, next: none})
	}
}

func (s *lru) has(item int32) bool { return s.nodes[item].list != absent }

func (s *lru) link(item int32, to uint8) {
	n := &s.nodes[item]
	l := &s.classes[n.class].lists[to]
	n.list, n.prev, n.next = to, none, l.head
	if l.head != none {
		s.nodes[l.head].prev = item
	} else {
		l.tail = item
	}
	l.head = item
	l.bytes += n.bytes
}

func (s *lru) unlink(item int32) {
	n := &s.nodes[item]
	l := &s.classes[n.class].lists[n.list]
	if n.prev != none {
		s.nodes[n.prev].next = n.next
	} else {
		l.head = n.next
	}
	if n.next != none {
		s.nodes[n.next].prev = n.prev
	} else {
		l.tail = n.prev
	}
	l.bytes -= n.bytes
	n.list, n.prev, n.next = absent, none, none
}

// remove takes an item out, if it is there.
func (s *lru) remove(item int32) {
	if !s.has(item) {
		return
	}
	n := &s.nodes[item]
	s.unlink(item)
	s.classes[n.class].used -= n.chunk
	s.left(item)
}

func (n *node) expired(now int64) bool { return n.expires != 0 && n.expires <= now }

// get reports whether an item is there, and notes that it was fetched.
func (s *lru) get(item int32, now int64) bool {
	n := &s.nodes[item]
	switch {
	case n.list == absent:
		return false
	case n.expired(now):
		s.remove(item)
		return false
	case n.flags&active != 0:
	case n.flags&fetched == 0:
		n.flags |= fetched
	case n.list == cold:
		n.used = now
		s.unlink(item)
		s.link(item, warm)
	default:
		n.flags |= active
		n.used = now
	}
	return true
}

// set stores an item of so many bytes, which takes a chunk of a class.
func (s *lru) set(item int32, class uint8, bytes, chunk, expires, now int64) {
	// memcached finds room for the new item first, and drops the old one of the key then.
	room := s.room(class, chunk, now)
	s.remove(item)
	if !room {
		return
	}
	s.nodes[item] = node{prev: none, next: none, used: now, expires: expires, bytes: bytes, chunk: chunk, class: class}
	s.classes[class].used += chunk
	s.link(item, hot)
	s.juggle(class, now)
}

// fits reports whether a class has room for a chunk. A class takes a page that no other has if it needs one.
// Its first page it gets in any case.
func (s *lru) fits(class uint8, chunk int64) bool {
	c := &s.classes[class]
	need := float64(c.used+chunk) / s.shares.of(class, s.rate)
	for need > c.pages*c.page {
		switch {
		case s.free >= 1:
			s.free--
		case c.pages > 0:
			return false
		}
		c.pages++
	}
	return true
}

// room evicts until a chunk fits. What it evicts is the tail of COLD; if COLD is empty, it moves the tail of
// HOT, and then that of WARM, there.
func (s *lru) room(class uint8, chunk, now int64) bool {
	c := &s.classes[class]
	for !s.fits(class, chunk) {
		tail := c.lists[cold].tail
		switch {
		case tail != none:
			if !s.nodes[tail].expired(now) {
				s.evictions++
			}
			s.remove(tail)
		case s.pull(class, hot, 0, -1, now):
		case s.pull(class, warm, 0, -1, now):
		default:
			return false
		}
	}
	return true
}

// juggle does what the maintainer of memcached does with a class.
func (s *lru) juggle(class uint8, now int64) {
	c := &s.classes[class]
	age := 0.0
	if tail := c.lists[cold].tail; tail != none {
		age = float64(now - s.nodes[tail].used)
	}
	total := float64(c.lists[hot].bytes + c.lists[warm].bytes + c.lists[cold].bytes)
	for range turns {
		if !s.pull(class, hot, int64(total*s.limits.HotShare), int64(age*s.limits.HotAge), now) &&
			!s.pull(class, warm, int64(total*s.limits.WarmShare), int64(age*s.limits.WarmAge), now) {
			return
		}
	}
}

// pull looks at the tail of HOT or WARM: an active item goes to the head of WARM, and is not active any more.
// Another one goes to COLD if the list has more bytes than its limit, or if the item was not used for longer
// than oldest.
func (s *lru) pull(class, from uint8, limit, oldest, now int64) bool {
	l := &s.classes[class].lists[from]
	item := l.tail
	if item == none {
		return false
	}
	n := &s.nodes[item]
	switch {
	case n.expired(now):
		s.remove(item)
	case n.flags&active != 0:
		n.flags &^= active
		s.unlink(item)
		s.link(item, warm)
	case l.bytes > limit || now-n.used > oldest:
		s.unlink(item)
		s.link(item, cold)
	default:
		return false
	}
	return true
}
