package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/checksum"
	"github.com/shaledb/shale/internal/store/catalog/entry"
)

// recordVersion is written into every record but ships with leaders, which have leadersVersion, and those
// about rollups, which have rollupVersion: programs that do not know rollups must refuse them. Records of
// blocks without rollups came later, and have unrolledVersion. Records of any other version are refused.
const (
	recordVersion   = 2
	rollupVersion   = 3
	unrolledVersion = 4
	leadersVersion  = 5
)

const maxNumber = entry.MaxNumber

// record is the stored form of a commit. A field never changes its meaning. A new field needs a new version,
// because a reader that does not know the field must not ignore it.
type record struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	// Committed is the time of the record in Unix nanoseconds. The grace of the replaced blocks begins then.
	Committed int64           `json:"committed"`
	Attempt   string          `json:"attempt,omitempty"`
	Replaces  []string        `json:"replaces,omitempty"`
	Blocks    []entry.Stored  `json:"blocks,omitempty"`
	Covered   []coverageEntry `json:"covered,omitempty"`
	Skipped   []skipEntry     `json:"skipped,omitempty"`
	Deletion  *deletionEntry  `json:"deletion,omitempty"`
	// Cancels is the generation of a deletion that does not count any more.
	Cancels uint64       `json:"cancels,omitempty"`
	Clean   []CleanBlock `json:"clean,omitempty"`
	// Alone are blocks of rollups whose base has expired.
	Alone []string `json:"alone,omitempty"`
	// Unrolled are blocks of which no rollups are made.
	Unrolled []UnrolledBlock `json:"unrolled,omitempty"`
}

type coverageEntry struct {
	Node     string `json:"node"`
	Epoch    uint64 `json:"epoch"`
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	Appended int64  `json:"appended"`
	Closed   bool   `json:"closed"`
	Leaders  uint64 `json:"leaders,omitempty"`
}

type skipEntry struct {
	Node  string `json:"node"`
	Epoch uint64 `json:"epoch"`
	From  uint64 `json:"from"`
	To    uint64 `json:"to"`
	Why   string `json:"why"`
}

// commit is a record in memory.
type commit struct {
	id        string
	committed int64
	replaces  []string
	blocks    []Block
	deletion  *Deletion
	cancels   uint64
	clean     []CleanBlock
	alone     []string
	unrolled  []UnrolledBlock
	// ship is the number of a ship, 0 in other records. Its attempt names the process and the try.
	ship    uint64
	attempt string
	covered []Coverage
	skipped []Skip
	// ours says that this process has written the record.
	ours bool
}

func (c *commit) encode() ([]byte, error) {
	r := record{
		Version: c.version(), ID: c.id, Committed: c.committed, Attempt: c.attempt, Replaces: c.replaces, Alone: c.alone, Unrolled: c.unrolled,
	}
	for i := range c.blocks {
		r.Blocks = append(r.Blocks, entry.StoredOf(&c.blocks[i]))
	}
	for _, v := range c.covered {
		r.Covered = append(r.Covered, coverageEntry(v))
	}
	for _, s := range c.skipped {
		r.Skipped = append(r.Skipped, skipEntry(s))
	}
	if r.Cancels, r.Clean = c.cancels, c.clean; c.deletion != nil {
		e, err := deletionEntryOf(c.deletion)
		if err != nil {
			return nil, err
		}
		r.Deletion = e
	}
	data, err := json.MarshalIndent(&r, "", "  ")
	return checksum.Seal(append(data, '\n')), err
}

// version returns the version that a record is written with.
func (c *commit) version() int {
	switch {
	case len(c.unrolled) > 0:
		return unrolledVersion
	case c.ofRollups():
		return rollupVersion
	case slices.ContainsFunc(c.covered, func(v Coverage) bool { return v.Leaders > 0 }):
		return leadersVersion
	}
	return recordVersion
}

// parseRecord reads a record and checks that it belongs to its name.
func parseRecord(name string, data []byte) (*commit, error) {
	var r record
	if err := checksum.Parse(name, data, recordVersion, &r, rollupVersion, unrolledVersion, leadersVersion); err != nil {
		return nil, err
	}
	c, err := r.commit()
	if err == nil && recordName(r.ID) != name {
		err = fmt.Errorf("the record has the id %q", r.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	}
	return c, nil
}

// commit validates a record that was read.
func (r *record) commit() (*commit, error) {
	c := &commit{id: r.ID, committed: r.Committed, replaces: r.Replaces, attempt: r.Attempt, alone: r.Alone, unrolled: r.Unrolled}
	others := len(r.Blocks) + len(r.Replaces) + len(r.Alone) + len(r.Covered)
	if others+len(r.Unrolled) == 0 && r.Deletion == nil && r.Cancels == 0 && len(r.Clean) == 0 {
		return nil, errors.New("the record does not add, replace, cover or delete anything")
	}
	if err := r.checkDeletions(c); err != nil {
		return nil, err
	}
	added := make(map[string]bool, len(r.Blocks))
	for i := range r.Blocks {
		b, err := r.Blocks[i].Block()
		if err != nil {
			return nil, fmt.Errorf("block %q: %w", r.Blocks[i].ID, err)
		}
		if added[b.ID] {
			return nil, fmt.Errorf("block %q is listed twice", b.ID)
		}
		added[b.ID] = true
		c.blocks = append(c.blocks, b)
	}
	for _, id := range r.Replaces {
		if bucket.CheckName(ObjectName(id)) != nil || added[id] {
			return nil, fmt.Errorf("the record replaces %q, which is not a valid name or is its own block", id)
		}
	}
	if err := r.addShip(c); err != nil {
		return nil, err
	}
	if r.Version != c.version() || len(r.Unrolled) > 0 && others > 0 {
		return nil, fmt.Errorf("version %d does not fit what the record says about rollups or leaders", r.Version)
	}
	return c, nil
}
