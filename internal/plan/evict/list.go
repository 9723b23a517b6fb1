package evict

// none ends a list.
const none = -1

// links are the neighbours of each key. A key is in one list of the links at most.
type links struct{ toward, away []int32 } // the head; the tail

func newLinks(keys int) links {
	return links{make([]int32, keys), make([]int32, keys)}
}

// list is a list of keys, the newest at its head.
type list struct {
	links
	head, tail int32
	bytes      int64
	sizes      []uint32
}

func newList(l links, sizes []uint32) list {
	return list{links: l, head: none, tail: none, sizes: sizes}
}

func (l *list) push(key uint32) {
	k := int32(key)
	l.toward[k], l.away[k] = none, l.head
	if l.head == none {
		l.tail = k
	} else {
		l.toward[l.head] = k
	}
	l.head = k
	l.bytes += int64(l.sizes[key])
}

func (l *list) remove(key uint32) {
	k := int32(key)
	if before := l.toward[k]; before == none {
		l.head = l.away[k]
	} else {
		l.away[before] = l.away[k]
	}
	if after := l.away[k]; after == none {
		l.tail = l.toward[k]
	} else {
		l.toward[after] = l.toward[k]
	}
	l.bytes -= int64(l.sizes[key])
}
