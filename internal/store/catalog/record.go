package catalog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/checksum"
	"github.com/shaledb/shale/internal/store/catalog/entry"
)

// recordVersion is written into every record but those about rollups, which have rollupVersion: programs that
// do not know rollups must refuse them. Records of any other version are refused.
const (
	recordVersion = 2
	rollupVersion = 3
)

// maxNumber bounds sequence numbers, order numbers and generations, so that one more never overflows.
const maxNumber = 1<<62 - 1

// record is the stored form of a commit. A field never changes its meaning. A new field needs a new version,
// because a reader that does not know the field must not ignore it.
type record struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	// Committed is the time of the record in Unix nanoseconds. The grace of the replaced blocks begins then.
	Committed int64           `json:"committed"`
	Attempt   string          `json:"attempt,omitempty"`
	Replaces  []string        `json:"replaces,omitempty"`
	Blocks    []blockEntry    `json:"blocks,omitempty"`
	Covered   []coverageEntry `json:"covered,omitempty"`
	Skipped   []skipEntry     `json:"skipped,omitempty"`
	Deletion  *deletionEntry  `json:"deletion,omitempty"`
	// Cancels is the generation of a deletion that does not count any more.
	Cancels uint64       `json:"cancels,omitempty"`
	Clean   []CleanBlock `json:"clean,omitempty"`
	// Alone are blocks of rollups whose base has expired.
	Alone []string `json:"alone,omitempty"`
}

type blockEntry struct {
	ID     string `json:"id"`
	Signal string `json:"signal"`
	Group  string `json:"group"`
	Level  Level  `json:"level"`
	// Resolution is the length of the slots of rollups in nanoseconds. 0: rows as they came.
	Resolution  int64         `json:"resolution"`
	Base        string        `json:"base,omitempty"`
	Policies    string        `json:"policies,omitempty"`
	Sources     []sourceEntry `json:"sources"`
	OrderLo     uint64        `json:"order_lo"`
	OrderHi     uint64        `json:"order_hi"`
	MinTime     int64         `json:"min_time"`
	MaxTime     int64         `json:"max_time"`
	KeyMin      string        `json:"key_min"`
	KeyMax      string        `json:"key_max"`
	Series      uint64        `json:"series"`
	Samples     uint64        `json:"samples"`
	Lines       uint64        `json:"lines,omitempty"`
	LineBytes   uint64        `json:"line_bytes,omitempty"`
	Bytes       int64         `json:"bytes"`
	TenantCount int           `json:"tenant_count"`
	FirstTenant string        `json:"first_tenant"`
	FirstKey    string        `json:"first_key"`
	LastTenant  string        `json:"last_tenant"`
	LastKey     string        `json:"last_key"`
	Tenants     []string      `json:"tenants,omitempty"`
	Generation  uint64        `json:"generation"`
	Created     int64         `json:"created"`
}

type sourceEntry struct {
	Node  string `json:"node"`
	Epoch uint64 `json:"epoch"`
	SeqLo uint64 `json:"seq_lo"`
	SeqHi uint64 `json:"seq_hi"`
}

type coverageEntry struct {
	Node     string `json:"node"`
	Epoch    uint64 `json:"epoch"`
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	Appended int64  `json:"appended"`
	Closed   bool   `json:"closed"`
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
	// ship is the number of a ship, 0 in other records. Its attempt names the process and the try.
	ship    uint64
	attempt string
	covered []Coverage
	skipped []Skip
	// ours says that this process has written the record.
	ours bool
}

func (c *commit) encode() ([]byte, error) {
	r := record{Version: recordVersion, ID: c.id, Committed: c.committed, Attempt: c.attempt, Replaces: c.replaces, Alone: c.alone}
	if c.ofRollups() {
		r.Version = rollupVersion
	}
	for i := range c.blocks {
		r.Blocks = append(r.Blocks, entryOf(&c.blocks[i]))
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

func entryOf(b *Block) blockEntry {
	e := blockEntry{
		ID: b.ID, Signal: b.Signal.String(), Group: b.Group, Level: b.Level, OrderLo: b.OrderLo, OrderHi: b.OrderHi,
		MinTime: b.Range.Min, MaxTime: b.Range.Max, KeyMin: b.KeyMin.String(), KeyMax: b.KeyMax.String(),
		FirstKey: b.FirstKey.String(), LastKey: b.LastKey.String(),
		Series: b.Series, Samples: b.Samples, Lines: b.Lines, LineBytes: b.LineBytes, Bytes: b.Bytes, TenantCount: b.TenantCount,
		FirstTenant: b.FirstTenant, LastTenant: b.LastTenant, Tenants: b.Tenants, Generation: b.Generation, Created: b.Created,
		Resolution: b.Resolution, Base: b.Base, Policies: b.Policies,
	}
	for _, s := range b.Sources {
		e.Sources = append(e.Sources, sourceEntry(s))
	}
	return e
}

// parse reads an object: a checksum, and JSON with a version. An unknown version is an error of class
// invalid, all other damage is of class corrupt.
func parse(name string, data []byte, version int, into any, also ...int) error {
	data, err := checksum.Unseal(data)
	if err != nil {
		return fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	}
	if v.Version != version && !slices.Contains(also, v.Version) {
		return fmt.Errorf("%s: %w: unknown version %d, this program reads version %d", name, model.ErrInvalid, v.Version, version)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	}
	return nil
}

// parseRecord reads a record and checks that it belongs to its name.
func parseRecord(name string, data []byte) (*commit, error) {
	var r record
	if err := parse(name, data, recordVersion, &r, rollupVersion); err != nil {
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
	c := &commit{id: r.ID, committed: r.Committed, replaces: r.Replaces, attempt: r.Attempt, alone: r.Alone}
	if len(r.Blocks) == 0 && len(r.Replaces) == 0 && len(r.Alone) == 0 && len(r.Covered) == 0 && r.Deletion == nil && r.Cancels == 0 && len(r.Clean) == 0 {
		return nil, errors.New("the record does not add, replace, cover or delete anything")
	}
	if err := r.checkDeletions(c); err != nil {
		return nil, err
	}
	added := make(map[string]bool, len(r.Blocks))
	for i := range r.Blocks {
		b, err := r.Blocks[i].block()
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
	if (r.Version == rollupVersion) != c.ofRollups() {
		return nil, fmt.Errorf("version %d does not fit what the record says about rollups", r.Version)
	}
	return c, r.addShip(c)
}

// block validates an entry.
func (e *blockEntry) block() (Block, error) {
	b := Block{
		ID: e.ID, Group: e.Group, Level: e.Level, Range: model.TimeRange{Min: e.MinTime, Max: e.MaxTime}, OrderLo: e.OrderLo, OrderHi: e.OrderHi,
		Series: e.Series, Samples: e.Samples, Lines: e.Lines, LineBytes: e.LineBytes, Bytes: e.Bytes, TenantCount: e.TenantCount, Tenants: e.Tenants,
		FirstTenant: e.FirstTenant, LastTenant: e.LastTenant, Generation: e.Generation, Created: e.Created,
		Resolution: e.Resolution, Base: e.Base, Policies: e.Policies,
	}
	var err error
	if b.Signal, err = parseSignal(e.Signal); err != nil {
		return b, err
	}
	for _, s := range e.Sources {
		if s.SeqLo > s.SeqHi || s.SeqHi > maxNumber {
			return b, fmt.Errorf("invalid sequence numbers %d to %d", s.SeqLo, s.SeqHi)
		}
		b.Sources = append(b.Sources, Source(s))
	}
	for key, text := range map[*model.Key]string{&b.KeyMin: e.KeyMin, &b.KeyMax: e.KeyMax, &b.FirstKey: e.FirstKey, &b.LastKey: e.LastKey} {
		if *key, err = parseKey(text); err != nil {
			return b, err
		}
	}
	n := len(e.Tenants)
	switch {
	case bucket.CheckName(ObjectName(e.ID)) != nil:
		return b, errors.New("the id is not a valid object name")
	case e.Resolution < 0 || (e.Resolution > 0) != (e.Base != "") || (e.Resolution > 0) != (e.Policies != ""):
		return b, fmt.Errorf("invalid resolution %d of base %q by %q", e.Resolution, e.Base, e.Policies)
	case len(e.Sources) == 0:
		return b, errors.New("the entry has no sources")
	case e.Group == "":
		return b, errors.New("the entry has no retention group")
	case e.OrderLo > e.OrderHi || e.OrderHi > maxNumber:
		return b, fmt.Errorf("invalid order numbers %d to %d", e.OrderLo, e.OrderHi)
	case e.Generation > maxNumber:
		return b, fmt.Errorf("generation %d exceeds the maximum", e.Generation)
	case e.Bytes < 0 || b.KeyMax.Less(b.KeyMin) || b.FirstKey.Less(b.KeyMin) || b.KeyMax.Less(b.LastKey):
		return b, fmt.Errorf("inconsistent size or keys: %d bytes, keys %s to %s, from %s to %s", e.Bytes, b.KeyMin, b.KeyMax, b.FirstKey, b.LastKey)
	case !slices.IsSorted(e.Tenants) || e.TenantCount < n || n > entry.MaxTenants || e.FirstTenant > e.LastTenant,
		n > 0 && (e.FirstTenant != e.Tenants[0] || e.LastTenant != e.Tenants[n-1] || e.TenantCount != n):
		return b, errors.New("the tenants are inconsistent")
	}
	b.Complete()
	return b, nil
}

func parseSignal(s string) (model.Signal, error) {
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		if signal.String() == s {
			return signal, nil
		}
	}
	return 0, fmt.Errorf("unknown signal %q", s)
}

func parseKey(s string) (model.Key, error) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != model.KeyBytes {
		return model.Key{}, fmt.Errorf("invalid key %q", s)
	}
	return model.KeyFrom(raw), nil
}
