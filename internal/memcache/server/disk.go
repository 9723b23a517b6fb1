package server

import (
	"context"
	"encoding/binary"
	"unsafe"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/memcache/items"
)

// A value on disk begins with what memory knows of its item: u32 client flags, u32 expiry, u64 unique number,
// u8 marks, 3 bytes 0.
const diskHeader = 20

// keptMarks are those that go to the disk with an item.
const keptMarks = items.Binary | items.Stale | items.Won

// keyOf names an item on disk. The name is that of the bytes, which the key must not outlive.
func keyOf(key []byte) cache.Key {
	return cache.Key{Kind: cache.Item, Object: unsafe.String(unsafe.SliceData(key), len(key))}
}

// hashOf is the hash of a key, in memory and on disk.
func hashOf(key []byte) uint64 { return keyOf(key).Hash() }

// changed notes that the item of a hash was stored, changed or removed. The caller holds the lock of the
// shard, so that no one takes the old value from the disk any more.
func (c *conn) changed(sh *items.Shard, hash uint64) {
	sh.Changed(hash)
	if c.s.disk == nil {
		return
	}
	c.mark = max(c.mark, c.s.disk.Forget(hash))
}

// used tells the disk that a reader wants an item that is in memory, and gives it the item if that is worth a
// write. Reads within a short time count as one: those of one query. The caller holds the lock of the shard.
func (c *conn) used(it items.Item) {
	if c.s.disk == nil {
		return
	}
	it.SetReader(c.reader)
	if hash := it.Hash(); c.s.disk.Wants(hash, c.reader) {
		c.s.disk.Put(cache.Key{Kind: cache.Item, Object: string(it.Key())}, c.reader, diskValue(it))
	}
}

func diskValue(it items.Item) []byte {
	v := make([]byte, diskHeader+it.Size())
	binary.LittleEndian.PutUint32(v, it.Flags())
	binary.LittleEndian.PutUint32(v[4:], it.Expires())
	binary.LittleEndian.PutUint64(v[8:], it.CAS())
	v[16] = byte(it.Marks() & keptMarks)
	copy(v[diskHeader:], it.Value())
	return v
}

// parseDisk reads a value on disk. It may be anything with a right checksum.
func parseDisk(v []byte) (n items.Draft, value []byte, ok bool) {
	if len(v) < diskHeader {
		return n, nil, false
	}
	n.Flags, n.Expires, n.CAS = binary.LittleEndian.Uint32(v), binary.LittleEndian.Uint32(v[4:]), binary.LittleEndian.Uint64(v[8:])
	n.Marks = items.Marks(v[16]) & keptMarks
	n.Size = len(v) - diskHeader
	return n, v[diskHeader:], true
}

// fromDisk brings an item from the disk to memory. The shard is locked when it is called and when it returns,
// and not in between. What changed meanwhile is looked up again.
func (c *conn) fromDisk(sh *items.Shard, key []byte, hash uint64, why items.Why) (items.Item, items.Why) {
	k := keyOf(key)
	for range 4 {
		if !c.s.disk.Has(k) {
			return nil, why
		}
		stamp := sh.Stamp(hash)
		sh.Unlock()
		found := c.s.disk.Get(context.Background(), k, cache.Asker{Query: uint64(c.reader)})
		sh.Lock()
		it, now := sh.Find(key, hash, c.now)
		if it != nil {
			return it, now
		}
		if sh.Stamp(hash) != stamp {
			continue
		}
		n, value, ok := parseDisk(found.Value)
		if !ok {
			return nil, why
		}
		if c.s.items.IsOver(n.CAS, n.Expires, c.now) {
			return nil, items.Expired
		}
		for at := c.s.cas.Load(); at < n.CAS && !c.s.cas.CompareAndSwap(at, n.CAS); at = c.s.cas.Load() {
			// The clock was set back since the item got its number.
		}
		n.Key, n.Hash, n.Now, n.Reader = key, hash, c.now, c.reader
		if it = sh.Insert(&n); it == nil {
			return nil, items.Missing
		}
		copy(it.Value(), value)
		sh.Counts[items.DiskHits]++
		return it, items.Missing
	}
	return nil, items.Missing
}
