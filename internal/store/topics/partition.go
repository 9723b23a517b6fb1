package topics

import (
	"fmt"
	"math/bits"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// MaxPartitions bounds the partitions of a topic: names of partitions have four digits, and each partition
// has a head.
const MaxPartitions = 4096

// PartitionOf returns the partition of a series. The tail bits of a key are even whatever its labels are, and
// another tenant's series with the same labels is in the same partition.
func PartitionOf(k model.Key, partitions int32) int32 { return int32(k.Lo & uint64(partitions-1)) }

// Node names a partition in parts, in blocks and in records of ships, where a journal has the name of a
// machine.
func Node(partition int32) string { return fmt.Sprintf("p%04d", partition) }

// PartitionOfNode returns the partition that has a name as Node gives it.
func PartitionOfNode(node string) (partition int32, ok bool) {
	n, err := fmt.Sscanf(node, "p%d", &partition)
	return partition, n == 1 && err == nil && Node(partition) == node
}

// Sequence returns the sequence number of the record with an offset, as journals number their records from 1.
func Sequence(offset int64) uint64 { return uint64(offset) + 1 }

// Offset returns the offset after the record with a sequence number, which is also the first one that a
// journal covered up to there has not.
func Offset(covered uint64) int64 { return int64(covered) }

// Covered is the sequence number up to which a journal is covered whose first offset that is not is this one.
func Covered(offset int64) uint64 { return uint64(offset) }

// Lost is what is given up of a partition whose topic is gone, as far as it is not shipped.
func Lost(shipped *catalog.Coverage) catalog.Skip {
	return catalog.Skip{
		Node: shipped.Node, Epoch: shipped.Epoch, From: shipped.To + 1, To: catalog.ToEnd,
		Why: "its topic was gone, and an operator has given up what was not in the bucket",
	}
}

// Parents returns the partitions of the epoch before that have series of a partition of the next one.
func Parents(partition, before, next int32) (parents []int32) {
	shared := min(before, next)
	for p := partition & (shared - 1); p < before; p += shared {
		parents = append(parents, p)
	}
	return parents
}

// checkPartitions returns an error unless n is a power of two.
func checkPartitions(n int32) error {
	if n < 1 || n > MaxPartitions || bits.OnesCount32(uint32(n)) != 1 {
		return fmt.Errorf("%d partitions: the number must be a power of two, at most %d", n, MaxPartitions)
	}
	return nil
}
