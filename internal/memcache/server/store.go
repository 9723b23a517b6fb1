package server

import (
	"strconv"

	"github.com/shaledb/shale/internal/memcache/items"
)

// operation is how a value is stored.
type operation uint8

const (
	opSet operation = iota
	opAdd
	opReplace
	opAppend
	opPrepend
	opCAS
)

// outcome is what came of it.
type outcome uint8

const (
	stored outcome = iota
	notStored
	exists
	notFound
	noMemory
)

// storing is a value that is to be stored.
type storing struct {
	op      operation
	key     []byte
	hash    uint64
	flags   uint32
	expires uint32
	value   []byte
	cas     uint64 // that the item must have; 0: any
	marks   items.Marks
	// stale: a value for an older item replaces a newer one, which stays out of date.
	stale bool
}

// tooLarge reports whether an item is larger than the server takes. The size is that which it would have in
// memcached.
func (s *Server) tooLarge(key int, flags uint32, value int) bool {
	return memcachedSize(key, flags, value) > s.o.MaxItem
}

func memcachedSize(key int, flags uint32, value int) int {
	size := 48 + 8 + key + 1 + value + 2
	if flags != 0 {
		size += 4
	}
	return size
}

// store stores a value, and returns the unique number of the item.
func (c *conn) store(n *storing) (outcome, uint64) {
	var sh *items.Shard
	var old items.Item
	if n.op == opSet {
		sh = c.s.items.Shard(n.hash) // whatever is there is replaced
		sh.Lock()
	} else {
		sh, old, _ = c.locate(n.key, n.hash)
	}
	defer sh.Unlock()
	sh.Counts[items.Sets]++
	draft := items.Draft{Key: n.key, Hash: n.hash, Size: len(n.value), Flags: n.flags, Expires: n.expires, Now: c.now, Reader: c.reader, Marks: n.marks}
	value, before, after := n.value, []byte(nil), []byte(nil)
	switch n.op {
	case opAdd:
		if old != nil {
			return notStored, 0
		}
	case opReplace:
		if old == nil {
			return notStored, 0
		}
	case opAppend, opPrepend:
		switch {
		case old == nil:
			return notStored, 0
		case n.cas != 0 && n.cas != old.CAS():
			return exists, 0
		case c.s.tooLarge(len(n.key), old.Flags(), old.Size()+len(value)) || !c.s.buffers.take(old.Size()):
			return notStored, 0
		}
		kept := append([]byte(nil), old.Value()...) // storing the new value may overwrite it
		defer c.s.buffers.give(len(kept))
		if n.op == opAppend {
			before = kept
		} else {
			after = kept
		}
		draft.Size, draft.Flags, draft.Expires = len(kept)+len(value), old.Flags(), old.Expires()
	case opCAS:
		switch {
		case old == nil:
			sh.Counts[items.CASMisses]++
			return notFound, 0
		case n.cas != old.CAS() && !(n.stale && n.cas != 0 && n.cas < old.CAS()):
			sh.Counts[items.CASBad]++
			return exists, 0
		case n.cas != old.CAS():
			draft.Expires = old.Expires()
			draft.Marks |= items.Stale
			if old.Has(items.Won) {
				draft.Marks |= items.Won
			}
		}
		sh.Counts[items.CASHits]++
	}
	draft.CAS = c.s.cas.Add(1)
	it := sh.Insert(&draft)
	c.changed(sh, n.hash)
	if it == nil {
		return noMemory, 0
	}
	at := copy(it.Value(), before)
	at += copy(it.Value()[at:], value)
	copy(it.Value()[at:], after)
	c.used(it)
	return stored, draft.CAS
}

// drop removes the item of a key whose new value could not be taken, so that the old one is not served for
// it.
func (c *conn) drop(key []byte) {
	sh, it, _ := c.locate(key, hashOf(key))
	defer sh.Unlock()
	if it != nil {
		sh.Remove(it)
	}
	c.changed(sh, hashOf(key))
}

// add adds to the number that an item has, or subtracts from it. The shard is locked, and the item is one of
// it.
func (c *conn) add(sh *items.Shard, it items.Item, up bool, delta uint64) (items.Item, uint64, bool) {
	n, ok := counter(it.Value())
	if !ok || it.Size() == 0 {
		return nil, 0, false
	}
	switch {
	case up:
		n += delta
		sh.Counts[items.IncrementHits]++
	default:
		n -= min(delta, n)
		sh.Counts[items.DecrementHits]++
	}
	var digits [20]byte
	text := strconv.AppendUint(digits[:0], n, 10)
	hash := it.Hash()
	if len(text) <= it.Size() {
		it.SetCAS(c.s.cas.Add(1))
		for i := copy(it.Value(), text); i < it.Size(); i++ {
			it.Value()[i] = ' '
		}
		c.changed(sh, hash)
		return it, n, true
	}
	var key [256]byte
	draft := items.Draft{
		Key: key[:copy(key[:], it.Key())], Hash: hash, Size: len(text), CAS: c.s.cas.Add(1), Flags: it.Flags(), Expires: it.Expires(),
		Now: c.now, Reader: it.Reader(), Marks: it.Marks() & items.Binary,
	}
	if it = sh.Insert(&draft); it != nil {
		copy(it.Value(), text)
	}
	c.changed(sh, hash)
	return it, n, it != nil
}
