package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/part"
)

// ManifestName is the file that names the local parts. It is replaced as a whole, so every change of the set
// of parts (a flush, a merge, a ship) is atomic.
const ManifestName = "MANIFEST"

// ManifestVersion changes when older programs would misread the file.
const ManifestVersion = 1

// Manifest is the content of the file: JSON after a line with its checksum.
type Manifest struct {
	Version int           `json:"version"`
	Seed    model.KeySeed `json:"seed"`
	Node    string        `json:"node"`
	// Epoch names the journal: the time when the folder was created, in Unix nanoseconds.
	Epoch uint64 `json:"epoch"`
	// Covered is the last sequence number of the journal whose rows and labels are in parts.
	Covered uint64 `json:"covered"`
	// NextFile numbers the next part.
	NextFile uint64 `json:"next_file"`
	Parts    []Info `json:"parts"`
	// Fences are the deletions of records up to Covered that concern rows of the folder.
	Fences []Fence `json:"fences,omitempty"`
}

// Fence is a deletion at its place in the journal.
type Fence struct {
	Seq uint64 `json:"seq"`
	// Cancelled says that the deletion hides nothing any more.
	Cancelled bool `json:"cancelled,omitempty"`
	// Committed says that the catalogue of the bucket knows of the deletion, or that it was cancelled.
	Committed bool `json:"committed,omitempty"`
	// Began is when the deletion was applied, in Unix nanoseconds.
	Began    int64          `json:"began"`
	Deletion deletion.Entry `json:"deletion"`
}

// Kind says whether a part holds rows or labels.
type Kind string

const (
	Data   Kind = "data"
	Labels Kind = "labels"
)

// Info describes one local part.
type Info struct {
	File   string       `json:"file"`
	Kind   Kind         `json:"kind"`
	Signal model.Signal `json:"signal"`
	Group  Group        `json:"group"`
	SeqLo  uint64       `json:"seq_lo"`
	SeqHi  uint64       `json:"seq_hi"`
	Bytes  int64        `json:"bytes"`
	Series uint64       `json:"series"`
	Rows   uint64       `json:"rows"`
	// Range bounds the times of the rows.
	Range model.TimeRange `json:"range"`
	// Created is in Unix nanoseconds.
	Created int64 `json:"created"`
	// Ship is a number that the parts of one ship share, or 0. Such parts are not merged, so that a ship that
	// a crash interrupts is repeated with the same input and overwrites itself.
	Ship uint64 `json:"ship,omitempty"`
}

// ReadManifest returns nil if there is no manifest. If damaged is not nil, it says what is wrong with the
// manifest, and the result is that of the copy. A manifest that is older than its copy counts as damaged: it
// is the first of the two to be replaced.
func ReadManifest(fs vfs.FS, dir string) (m *Manifest, damaged, err error) {
	name := fs.PathJoin(dir, ManifestName)
	body, damaged, err := ReadChecked(fs, dir, ManifestName)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if m, err = parseManifest(name, body); err != nil || damaged != nil {
		return m, damaged, err
	}
	if body, err := ReadCopy(fs, dir, ManifestName); err == nil {
		c, err := parseManifest(name, body)
		if err == nil && c.Epoch == m.Epoch && (c.Covered > m.Covered || c.NextFile > m.NextFile) {
			return c, fmt.Errorf("%w: %s is older than its copy", model.ErrCorrupt, name), nil
		}
	}
	return m, nil, nil
}

func parseManifest(name string, body []byte) (*Manifest, error) {
	m := new(Manifest)
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", model.ErrCorrupt, name, err)
	}
	if m.Version != ManifestVersion {
		return nil, fmt.Errorf("%w: %s: expected version %d, got %d", model.ErrInvalid, name, ManifestVersion, m.Version)
	}
	return m, nil
}

// Write replaces the file.
func (m *Manifest) Write(fs vfs.FS, dir string) error {
	body, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return fmt.Errorf("%w: encode the manifest: %v", model.ErrInvalid, err)
	}
	return ReplaceChecked(fs, dir, ManifestName, body)
}

// NewInfo describes a finished part.
func NewInfo(file string, k Kind, g Group, m part.Meta, size int64) Info {
	i := Info{
		File: file, Kind: k, Signal: m.Signal, Group: g, SeqLo: m.SeqLo, SeqHi: m.SeqHi,
		Bytes: size, Series: m.Series, Rows: m.Samples + m.Exemplars + m.Text, Range: m.Range, Created: m.Created,
	}
	if i.Rows == 0 {
		i.Range = model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	}
	return i
}

// PartSuffix ends the names of parts.
const PartSuffix = ".part"
