package catalog

import (
	"cmp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/entry"
)

// recordSuffix ends the names of commit records.
const recordSuffix = ".json"

// ObjectName returns the name of a block's object.
func ObjectName(id string) string { return entry.ObjectName(id) }

func recordName(id string) string { return RecordPrefix + id + recordSuffix }

// Entries of blocks; see package entry.
type (
	Block  = entry.Block
	Source = entry.Source
	Level  = entry.Level
)

// The levels and the group of blocks; see package entry.
const (
	Shipped      = entry.Shipped
	Joined       = entry.Joined
	Settled      = entry.Settled
	DefaultGroup = entry.DefaultGroup
)

// BlockID makes the id of a shipped block; see [entry.ShippedID].
func BlockID(node string, epoch uint64, s model.Signal, group string, r model.TimeRange, seqLo, seqHi uint64, cut uint32) string {
	return entry.ShippedID(node, epoch, s, group, r, seqLo, seqHi, cut)
}

// MergedID makes the id of a merged block; see [entry.MergedID].
func MergedID(inputs []string, s model.Signal, r model.TimeRange, cut uint32, generation uint64, size int64, hash [16]byte) string {
	return entry.MergedID(inputs, s, r, cut, generation, size, hash)
}

// compareBlocks orders blocks by their first times.
func compareBlocks(a, b Block) int {
	return cmp.Or(cmp.Compare(a.Range.Min, b.Range.Min), cmp.Compare(a.OrderHi, b.OrderHi), cmp.Compare(a.ID, b.ID))
}
