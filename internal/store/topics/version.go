package topics

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// The versions of what roles write for each other, in Kafka and in the bucket. Programs read all versions up
// to the newest that they know, and refuse others. So while programs of two releases run together, none may
// write what the older one does not know: the setting journal-version says so. A version has all that those
// before it have.
const (
	// VersionRows has batches of rows, ships and first epochs.
	VersionRows = 1
	// VersionDeletions has orders to delete among the batches: records of version 2 of the journal.
	VersionDeletions = 2
	// VersionLeaders has the leaders of partitions in ships, which are commit records of version 5 then, and
	// topics that follow others while everything runs: records of epochs of version 2.
	VersionLeaders = 3
	// VersionRollups has trees of the names of Graphite in blocks, which have version 3 of the format then, and
	// rollups: commit records of versions 3 and 4. Programs of before read neither, in the bucket of one process
	// with the role all, too.
	VersionRollups = 4
	// Newest is what this program writes unless it is told otherwise.
	Newest = VersionRollups
)

// NeedVersion returns an error of class invalid if a process writes an older version than what it was told to
// do needs.
func NeedVersion(has, need int, what string) error {
	if has >= need {
		return nil
	}
	return fmt.Errorf("%w: %s needs journal-version %d, and it is %d: set it once all processes have been upgraded (limit: journal-version)", model.ErrInvalid, what, need, has)
}
