package entry

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// DefaultGroup is the retention group of blocks that name none.
const DefaultGroup = "default"

// Level is how far compaction has processed a block.
type Level uint8

// Shipped blocks are as the head made them. Joined blocks are merged and wait for the end of their day.
// Settled blocks hold days that are over; they are rewritten only when late rows arrive or rows are deleted.
const (
	Shipped Level = 0
	Joined  Level = 1
	Settled Level = 2
)

// Source is a range of a node's journal.
type Source struct {
	Node string
	// Epoch names the journal by its start time.
	Epoch uint64
	// SeqLo and SeqHi bound the sequence numbers of the batches whose rows a block holds.
	SeqLo, SeqHi uint64
}

// Block is the entry of a block in the catalogue: enough to rule the block out without opening it.
type Block struct {
	ID     string
	Signal model.Signal
	// Group names the retention of the rows: DefaultGroup, if series of all kinds share the block, or a time, a
	// dot, and the name of the rules that have chosen its series.
	Group string
	Level Level
	// Range bounds the sample times. Min > Max if there is no row.
	Range model.TimeRange
	// Node, Epoch, SeqLo and SeqHi are the origin of a shipped block. A merged block has all origins in
	// Sources, which are sorted by (Node, Epoch); Node and Epoch are those of the first, SeqLo and SeqHi the
	// least and greatest of any.
	Node         string
	Epoch        uint64
	SeqLo, SeqHi uint64
	Sources      []Source
	// OrderLo and OrderHi bound the order numbers of the shipped blocks whose rows are in this one. A shipped
	// block has the number of its ship, which the catalogue assigns. See package catalog.
	OrderLo, OrderHi uint64
	// KeyMin and KeyMax are the least and greatest key of any tenant. FirstKey is the first key of the first
	// tenant, LastKey the last key of the last one: the block spans (FirstTenant, FirstKey) to (LastTenant,
	// LastKey). If they are unknown, they are KeyMin and KeyMax.
	KeyMin, KeyMax    model.Key
	FirstKey, LastKey model.Key
	Series            uint64
	Samples           uint64
	// Lines counts lines of logs and LineBytes their bytes, without metadata. Both are 0 if unknown, as in
	// records of earlier versions.
	Lines, LineBytes uint64
	// Bytes is the size of the object.
	Bytes int64
	// Tenants are sorted. It is nil for a block with more than MaxTenants, which keeps only their number and
	// the first and last of them.
	Tenants                 []string
	TenantCount             int
	FirstTenant, LastTenant string
	// Generation is that of the last deletion that has been applied to the rows, or that is older than all of
	// them. The catalogue assigns it to shipped blocks.
	Generation uint64
	// Created is in Unix nanoseconds.
	Created int64
	// Resolution is the length of the slots of rollups in nanoseconds; 0: the rows are as they came. A block of
	// rollups is made of the block Base by the rules Policies. It counts as another form of Base, or Alone. See
	// rollup.go.
	Resolution     int64
	Base, Policies string
	Alone          bool
	// Record is the id of the commit record that holds the block. Blocks of one merge share no series; those of
	// one ship share no series and time.
	Record string
}

// Order decides between rows of one series and time in several blocks: the row of the greatest order counts.
func (b *Block) Order() uint64 { return b.OrderHi }

// MaxTenants bounds the memory of a block's entry in every process that opens the catalogue. The footer of a
// block with more tenants says whether it holds rows of a given one.
const MaxTenants = 512

// Complete fills in the fields that follow from others.
func (b *Block) Complete() {
	if b.Group == "" {
		b.Group = DefaultGroup
	}
	if len(b.Sources) == 0 {
		b.Sources = []Source{{b.Node, b.Epoch, b.SeqLo, b.SeqHi}}
	}
	first := b.Sources[0]
	b.Node, b.Epoch, b.SeqLo, b.SeqHi = first.Node, first.Epoch, first.SeqLo, first.SeqHi
	for _, s := range b.Sources {
		b.SeqLo, b.SeqHi = min(b.SeqLo, s.SeqLo), max(b.SeqHi, s.SeqHi)
	}
	if n := len(b.Tenants); n > 0 {
		b.Tenants = slices.Compact(slices.Sorted(slices.Values(b.Tenants)))
		n = len(b.Tenants)
		b.FirstTenant, b.LastTenant, b.TenantCount = b.Tenants[0], b.Tenants[n-1], max(b.TenantCount, n)
		if n > MaxTenants {
			b.Tenants = nil
		}
	}
	if b.FirstKey == (model.Key{}) && b.LastKey == (model.Key{}) {
		b.FirstKey, b.LastKey = b.KeyMin, b.KeyMax
	}
}

// HasTenant reports whether the block may hold rows of a tenant.
func (b *Block) HasTenant(name string) bool {
	if b.Tenants != nil {
		_, found := slices.BinarySearch(b.Tenants, name)
		return found
	}
	return b.TenantCount == 0 || b.FirstTenant <= name && name <= b.LastTenant
}

// TenantNames returns the tenants of a block for people.
func (b *Block) TenantNames() []string {
	if b.Tenants != nil {
		return b.Tenants
	}
	return []string{b.FirstTenant, "...", b.LastTenant}
}

// MayMeet reports whether two blocks may hold rows of one series and time. It may be wrong only when it is
// true.
func (b *Block) MayMeet(o *Block) bool {
	return b.Signal == o.Signal && b.Range.Overlaps(o.Range) && b.MayShareSeries(o)
}

// MayShareSeries reports whether two blocks of one signal may hold rows of one series, at any times. It may
// be wrong only when it is true.
func (b *Block) MayShareSeries(o *Block) bool {
	if dividedGroups(b.Group, o.Group) {
		return false
	}
	if b.KeyMax.Less(o.KeyMin) || o.KeyMax.Less(b.KeyMin) || b.Precedes(o) || o.Precedes(b) {
		return false
	}
	for _, pair := range [][2]*Block{{b, o}, {o, b}} {
		if known := pair[0].Tenants; known != nil {
			return slices.ContainsFunc(known, pair[1].HasTenant)
		}
	}
	return true
}

// dividedGroups reports whether the same retention rules, named after the first dot, have divided series
// among two groups.
func dividedGroups(a, b string) bool {
	if a == b {
		return false
	}
	_, x, named := strings.Cut(a, ".")
	_, y, _ := strings.Cut(b, ".")
	return named && x == y
}

// SharesDay reports whether two blocks may hold rows of one series and one day, in UTC. Each slot of a rollup
// lies in one day, so blocks that share none have no slot in common. It may be wrong only when it is true.
func (b *Block) SharesDay(o *Block) bool {
	return b.Signal == o.Signal && !b.SameMerge(o) && o.ReachesDayOf(b) && b.ReachesDayOf(o) && b.MayShareSeries(o)
}

// SameMerge reports whether one merge has made both blocks. Then they share no series. Blocks of one ship
// may: those of several windows, with rows of other times.
func (b *Block) SameMerge(o *Block) bool { return b.Record == o.Record && b.Level != Shipped }

// ReachesDayOf reports whether the block may have rows on the first day of another one, or later.
func (b *Block) ReachesDayOf(o *Block) bool { return dayOf(o.Range.Min) <= dayOf(b.Range.Max) }

// dayOf numbers the days since 1970.
func dayOf(t int64) int64 {
	const day = int64(24 * time.Hour)
	if t < 0 {
		return (t+1)/day - 1
	}
	return t / day
}

// Newest returns the time of the newest row, or the time when a block without rows was made.
func (b *Block) Newest() int64 {
	if b.Range.Min > b.Range.Max {
		return b.Created
	}
	return b.Range.Max
}

// Precedes reports whether all series of b are known to sort before all of o, by (tenant, key).
func (b *Block) Precedes(o *Block) bool {
	if b.TenantCount == 0 || o.TenantCount == 0 || b.LastTenant > o.FirstTenant {
		return false
	}
	return b.LastTenant < o.FirstTenant || b.LastKey.Less(o.FirstKey)
}

// ShippedID makes the id of a shipped block. It is a function of the block's content, so that a repeated ship
// overwrites itself: the node, its journal and the sequence numbers there, the signal, the retention group,
// the range of the rows, and the position of the block among those that one ship was cut into. It begins with
// a hash: object stores spread objects by the first bytes of their names, and blocks of one time, which are
// read together, would all go to one place. Then follows the time of the first row, for people.
func ShippedID(node string, epoch uint64, s model.Signal, group string, r model.TimeRange, seqLo, seqHi uint64, cut uint32) string {
	var h idHash
	h.text(node)
	h = append(h, byte(s))
	h.text(group)
	h.numbers(epoch, uint64(r.Min), uint64(r.Max), seqLo, seqHi, uint64(cut))
	return h.id(s, r)
}

// MergedID makes the id of a merged block. It is a function of the ids of the inputs, the range, the position
// among the blocks that the merge was cut into, the last applied deletion, and the size and a hash of the
// bytes. Size and hash are needed because programs with other options or of another version may write the
// same rows in other bytes, and a visible object must never be overwritten with other bytes.
func MergedID(inputs []string, s model.Signal, r model.TimeRange, cut uint32, generation uint64, size int64, hash [16]byte) string {
	var h idHash
	for _, id := range slices.Sorted(slices.Values(inputs)) {
		h.text(id)
	}
	h = append(h, byte(s))
	h.numbers(uint64(r.Min), uint64(r.Max), uint64(cut), generation, uint64(size))
	h = append(h, hash[:]...)
	return h.id(s, r)
}

// idHash collects the parts of an id.
type idHash []byte

func (h *idHash) text(s string) {
	*h = binary.AppendUvarint(*h, uint64(len(s)))
	*h = append(*h, s...)
}

func (h *idHash) numbers(ns ...uint64) {
	for _, n := range ns {
		*h = binary.BigEndian.AppendUint64(*h, n)
	}
}

func (h idHash) hex() string {
	sum := sha256.Sum256(h)
	return hex.EncodeToString(sum[:16])
}

func (h idHash) id(s model.Signal, r model.TimeRange) string {
	return h.hex() + "-" + time.Unix(0, r.Min).UTC().Format("20060102T150405Z") + "-" + s.String()
}
