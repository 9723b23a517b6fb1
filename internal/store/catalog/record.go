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
)

// recordVersion stands in every record. A reader refuses versions that it does not know.
const recordVersion = 1

// record is a commit as it is stored: of a block, or, without one, of the end of those that it replaces. Fields are
// never given another meaning; a new field is a new version, since whoever does not know it must not pass over it.
type record struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	// Committed is when the record was written, in Unix nanoseconds. The grace of what it replaces begins there.
	Committed int64       `json:"committed"`
	Replaces  []string    `json:"replaces,omitempty"`
	Block     *blockEntry `json:"block,omitempty"`
}

type blockEntry struct {
	Node        string   `json:"node"`
	Signal      string   `json:"signal"`
	MinTime     int64    `json:"min_time"`
	MaxTime     int64    `json:"max_time"`
	Epoch       uint64   `json:"epoch"`
	SeqLo       uint64   `json:"seq_lo"`
	SeqHi       uint64   `json:"seq_hi"`
	KeyMin      string   `json:"key_min"`
	KeyMax      string   `json:"key_max"`
	Series      uint64   `json:"series"`
	Samples     uint64   `json:"samples"`
	Bytes       int64    `json:"bytes"`
	Tenants     []string `json:"tenants,omitempty"`
	TenantCount int      `json:"tenant_count"`
	Generation  uint64   `json:"generation"`
	Created     int64    `json:"created"`
}

// recordOf makes the record of a block, with its tenants in order and bounded.
func recordOf(b Block, committed int64) *record {
	tenants := slices.Clone(b.Tenants)
	slices.Sort(tenants)
	tenants = slices.Compact(tenants)
	count := max(b.TenantCount, len(tenants))
	if len(tenants) > maxTenants {
		tenants = nil
	}
	return &record{
		Version: recordVersion, ID: b.ID, Committed: committed, Replaces: slices.Clone(b.Replaces),
		Block: &blockEntry{
			Node: b.Node, Signal: b.Signal.String(), MinTime: b.Range.Min, MaxTime: b.Range.Max, Epoch: b.Epoch, SeqLo: b.SeqLo, SeqHi: b.SeqHi,
			KeyMin: b.KeyMin.String(), KeyMax: b.KeyMax.String(), Series: b.Series, Samples: b.Samples, Bytes: b.Bytes,
			Tenants: tenants, TenantCount: count, Generation: b.Generation, Created: b.Created,
		},
	}
}

func (r *record) encode() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	return append(data, '\n'), err
}

// parse reads the JSON of an object that has a version. Errors: class invalid for a version that is not known, corrupt
// for anything else that is not as it was written.
func parse(name string, data []byte, version int, into any) error {
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	}
	if v.Version != version {
		return fmt.Errorf("%s: %w: version %d is not known to this program", name, model.ErrInvalid, v.Version)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	}
	return nil
}

// parseRecord reads a record and checks that it is the one of its name.
func parseRecord(name string, data []byte) (*record, error) {
	r := new(record)
	if err := parse(name, data, recordVersion, r); err != nil {
		return nil, err
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w: %s", name, model.ErrCorrupt, fmt.Sprintf(format, args...))
	}
	if recordName(r.ID) != name {
		return nil, fail("the record is of %q", r.ID)
	}
	if r.Block == nil && len(r.Replaces) == 0 {
		return nil, fail("the record neither adds nor replaces a block")
	}
	for _, id := range r.Replaces {
		if bucket.CheckName(ObjectName(id)) != nil || id == r.ID {
			return nil, fail("the record replaces %q", id)
		}
	}
	if r.Block != nil {
		if _, err := r.block(); err != nil {
			return nil, fail("%v", err)
		}
	}
	return r, nil
}

// block returns the block of a record that has one.
func (r *record) block() (Block, error) {
	e := r.Block
	b := Block{
		ID: r.ID, Node: e.Node, Range: model.TimeRange{Min: e.MinTime, Max: e.MaxTime}, Epoch: e.Epoch, SeqLo: e.SeqLo, SeqHi: e.SeqHi,
		Series: e.Series, Samples: e.Samples, Bytes: e.Bytes, Tenants: e.Tenants, TenantCount: e.TenantCount,
		Generation: e.Generation, Replaces: r.Replaces, Created: e.Created,
	}
	switch e.Signal {
	case model.Metrics.String():
		b.Signal = model.Metrics
	case model.Logs.String():
		b.Signal = model.Logs
	default:
		return b, fmt.Errorf("signal %q", e.Signal)
	}
	var err error
	if b.KeyMin, err = parseKey(e.KeyMin); err == nil {
		b.KeyMax, err = parseKey(e.KeyMax)
	}
	switch {
	case err != nil:
		return b, err
	case e.Bytes < 0 || e.SeqLo > e.SeqHi || !slices.IsSorted(e.Tenants):
		return b, errors.New("the block's numbers make no sense")
	}
	return b, nil
}

func parseKey(s string) (model.Key, error) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != model.KeyBytes {
		return model.Key{}, fmt.Errorf("key %q", s)
	}
	return model.KeyFrom(raw), nil
}
