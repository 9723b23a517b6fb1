package items

// table finds items by 32 bits of their hash. An entry takes 8 bytes in a table that is at most three
// quarters full.
type table struct {
	entries []entry
	count   int
}

// entry says where an item is: at is its offset in units of 8 bytes, plus 1. 0 is an empty place.
type entry struct{ tag, at uint32 }

func (t *table) home(tag uint32) int { return int(uint64(tag) * uint64(len(t.entries)) >> 32) }

func (t *table) next(i int) int {
	if i++; i == len(t.entries) {
		return 0
	}
	return i
}

// find returns the place of the entry of a key, or -1.
func (s *Shard) find(tag uint32, key []byte) int {
	t := &s.table
	if t.count == 0 {
		return -1
	}
	for i := t.home(tag); t.entries[i].at != 0; i = t.next(i) {
		if t.entries[i].tag == tag && string(s.at(t.entries[i].at).Key()) == string(key) {
			return i
		}
	}
	return -1
}

// findAt returns the place of the entry of an offset, which must be there.
func (t *table) findAt(tag, at uint32) int {
	i := t.home(tag)
	for t.entries[i].at != at {
		i = t.next(i)
	}
	return i
}

// put adds an entry, for which there must be room.
func (t *table) put(tag, at uint32) {
	i := t.home(tag)
	for t.entries[i].at != 0 {
		i = t.next(i)
	}
	t.entries[i] = entry{tag, at}
	t.count++
}

// remove empties a place. Entries that come after it move into the gap if the search for them passes it.
func (t *table) remove(i int) {
	t.count--
	for j := t.next(i); t.entries[j].at != 0; j = t.next(j) {
		h, n := t.home(t.entries[j].tag), len(t.entries)
		if (j-h+n)%n >= (j-i+n)%n {
			t.entries[i] = t.entries[j]
			i = j
		}
	}
	t.entries[i] = entry{}
}

// full reports whether another entry needs a larger table.
func (t *table) full() bool { return t.count >= len(t.entries)*3/4 }

// grow doubles the table, up to a size.
func (t *table) grow(most int) {
	old := t.entries
	t.entries, t.count = make([]entry, min(max(2*len(old), 64), most)), 0
	for _, e := range old {
		if e.at != 0 {
			t.put(e.tag, e.at)
		}
	}
}
