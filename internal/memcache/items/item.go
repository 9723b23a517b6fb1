package items

import "encoding/binary"

// An item is a header, its key and its value, at an offset that is a multiple of 8.
//
//	u32 length of all of it, padded to 8 bytes, u32 length of the value, u64 hash, u64 unique number,
//	u32 client flags, u32 expiry, u32 last use, u16 reader, u8 length of the key, u8 marks, u8 uses, 7 bytes 0
const headerBytes = 48

// Marks are what is known of an item besides its value.
type Marks uint8

const (
	// Fetched: it was read since it was stored.
	Fetched Marks = 1 << iota
	// Stale: it was marked as out of date, but may still be served. Won: a client was told to bring it again.
	Stale
	Won
	// Binary: its key was sent in base64.
	Binary
	live // of this package: the index knows it
)

// Item is a view of an item in memory. It is valid as long as the lock of its shard is held, and until the
// next Insert.
type Item []byte

func round(n int) int { return (n + 7) &^ 7 }

// Key returns the key.
func (it Item) Key() []byte { return it[headerBytes : headerBytes+int(it[38])] }

// Value returns the value, which may be changed in place.
func (it Item) Value() []byte {
	from := headerBytes + int(it[38])
	return it[from : from+it.Size()]
}

// Size is the length of the value.
func (it Item) Size() int { return int(binary.LittleEndian.Uint32(it[4:])) }

// Hash is the hash of the key.
func (it Item) Hash() uint64 { return binary.LittleEndian.Uint64(it[8:]) }

// CAS is the unique number of the value, and SetCAS changes it.
func (it Item) CAS() uint64     { return binary.LittleEndian.Uint64(it[16:]) }
func (it Item) SetCAS(n uint64) { binary.LittleEndian.PutUint64(it[16:], n) }

// Flags are those of the client.
func (it Item) Flags() uint32 { return binary.LittleEndian.Uint32(it[24:]) }

// Expires is a Unix time in seconds, or 0 for an item that does not expire.
func (it Item) Expires() uint32     { return binary.LittleEndian.Uint32(it[28:]) }
func (it Item) SetExpires(t uint32) { binary.LittleEndian.PutUint32(it[28:], t) }

// Used is the Unix time of the last use.
func (it Item) Used() uint32 { return binary.LittleEndian.Uint32(it[32:]) }

// Reader tells the last reader from others, and SetReader changes it.
func (it Item) Reader() uint16     { return binary.LittleEndian.Uint16(it[36:]) }
func (it Item) SetReader(r uint16) { binary.LittleEndian.PutUint16(it[36:], r) }

// Has reports whether the item has marks. Mark adds some, and Unmark removes some.
func (it Item) Has(m Marks) bool { return Marks(it[39])&m != 0 }
func (it Item) Mark(m Marks)     { it[39] |= byte(m) }
func (it Item) Unmark(m Marks)   { it[39] &^= byte(m) }

// Use notes that the item was read.
func (it Item) Use(now uint32) {
	if it[40] < mostUses {
		it[40]++
	}
	it.Mark(Fetched)
	binary.LittleEndian.PutUint32(it[32:], now)
}

// Bytes is the memory that the item takes.
func (it Item) Bytes() int { return len(it) }

// Draft describes an item that is to be stored.
type Draft struct {
	Key     []byte
	Hash    uint64
	Size    int
	CAS     uint64
	Flags   uint32
	Expires uint32
	Now     uint32
	Reader  uint16
	Marks   Marks
}

func (n *Draft) bytes() int { return round(headerBytes + len(n.Key) + n.Size) }

// write writes header and key.
func (n *Draft) write(it Item, uses byte) {
	le := binary.LittleEndian
	le.PutUint32(it, uint32(len(it)))
	le.PutUint32(it[4:], uint32(n.Size))
	le.PutUint64(it[8:], n.Hash)
	le.PutUint64(it[16:], n.CAS)
	le.PutUint32(it[24:], n.Flags)
	le.PutUint32(it[28:], n.Expires)
	le.PutUint32(it[32:], n.Now)
	le.PutUint16(it[36:], n.Reader)
	it[38], it[39], it[40] = byte(len(n.Key)), byte(n.Marks|live), uses
	copy(it[headerBytes:], n.Key)
}

// Marks returns all marks.
func (it Item) Marks() Marks { return Marks(it[39]) &^ live }
