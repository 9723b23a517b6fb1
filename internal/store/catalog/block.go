package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Names of objects.
const (
	blockPrefix  = "blocks/"
	recordPrefix = "catalog/"
	recordSuffix = ".json"
	seedName     = "seed"
)

// ObjectName returns the name of a block's object.
func ObjectName(id string) string { return blockPrefix + id }

func recordName(id string) string { return recordPrefix + id + recordSuffix }

// Block is what the catalogue knows of a block, so that it need not be opened to be passed over.
type Block struct {
	ID     string
	Node   string
	Signal model.Signal
	// Range bounds the sample times. Min > Max if there is no row.
	Range model.TimeRange
	// Epoch names the node's journal. SeqLo and SeqHi bound the journal sequence numbers of the node whose rows the block holds.
	Epoch          uint64
	SeqLo, SeqHi   uint64
	KeyMin, KeyMax model.Key
	Series         uint64
	Samples        uint64
	// Bytes is the size of the object.
	Bytes int64
	// Tenants are sorted. Of a block with more than a few hundred only the number is kept, and Tenants is nil.
	Tenants     []string
	TenantCount int
	// Generation counts the deletions that have been applied to the rows.
	Generation uint64
	// Replaces are the ids of the blocks whose rows are all in this one.
	Replaces []string
	// Created is in Unix nanoseconds.
	Created int64
}

// maxTenants bounds what one block costs in the memory of everybody who has the catalogue. Whether a block with more
// tenants holds rows of a certain one, its footer says.
const maxTenants = 512

// HasTenant reports whether the block may hold rows of a tenant.
func (b *Block) HasTenant(name string) bool {
	if b.Tenants == nil {
		return true
	}
	_, found := slices.BinarySearch(b.Tenants, name)
	return found
}

// BlockID makes the id of a shipped block. It is a function of what the block holds, so that a repeated ship overwrites
// itself: the node, its journal and the sequence numbers there, the signal, the retention group, the range of the rows, and the place of
// the block among those that one ship was cut into. It begins with the time of the first row, for people who look at
// the bucket.
func BlockID(node string, epoch uint64, s model.Signal, group string, r model.TimeRange, seqLo, seqHi uint64, cut uint32) string {
	var b []byte
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	text(node)
	b = append(b, byte(s))
	text(group)
	for _, n := range []uint64{epoch, uint64(r.Min), uint64(r.Max), seqLo, seqHi, uint64(cut)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	return time.Unix(0, r.Min).UTC().Format("20060102T150405Z") + "-" + s.String() + "-" + hex.EncodeToString(sum[:16])
}
