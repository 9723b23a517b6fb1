package tsdbimport

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/shaledb/shale/internal/model"
)

// Block is a block of Prometheus.
type Block struct {
	ID string `json:"id"`
	// Folder is the path of the block below that of the source; empty if the source is the block.
	Folder string `json:"folder"`
	// Tenant is the folder of Mimir that the block lies in; empty in other layouts.
	Tenant string `json:"tenant,omitempty"`
	// Samples lie in [MinTime, MaxTime), in Unix milliseconds.
	MinTime int64  `json:"min_time"`
	MaxTime int64  `json:"max_time"`
	Series  uint64 `json:"series"`
	Samples uint64 `json:"samples"`
	// External labels are added to each series.
	External map[string]string `json:"external_labels,omitempty"`
	// LeftOut says why the block is not imported; empty if it is.
	LeftOut string `json:"left_out,omitempty"`

	parents []string
}

// The files of a block.
const (
	metaFile         = "meta.json"
	deletionMarkFile = "deletion-mark.json"
)

// meta is a meta.json with what Thanos and Mimir add.
type meta struct {
	tsdb.BlockMeta
	Thanos struct {
		Labels     map[string]string `json:"labels"`
		Downsample struct {
			Resolution int64 `json:"resolution"` // milliseconds
		} `json:"downsample"`
	} `json:"thanos"`
}

const metaVersion = 1

// Bounds of the times of a block in milliseconds: a server keeps nanoseconds in 64 bits, and no block is
// longer than ten years.
const (
	maxTime   = 1 << 43
	maxLength = 10 * 366 * dayLength
)

// parseMeta reads a meta.json. Its errors are of class corrupt, or of class invalid for another version.
func parseMeta(text []byte) (Block, error) {
	var m meta
	if err := json.Unmarshal(text, &m); err != nil {
		return Block{}, fmt.Errorf("%s: %w: %v", metaFile, model.ErrCorrupt, err)
	}
	switch {
	case m.Version != metaVersion:
		return Block{}, fmt.Errorf("%s: %w: version %d, expected %d", metaFile, model.ErrInvalid, m.Version, metaVersion)
	case m.ULID == ulid.ULID{}:
		return Block{}, fmt.Errorf("%s: %w: it has no ulid", metaFile, model.ErrCorrupt)
	case m.MinTime > m.MaxTime || m.MinTime < -maxTime || m.MaxTime > maxTime || m.MaxTime-m.MinTime > maxLength:
		return Block{}, fmt.Errorf("%s: %w: a block from minTime %d to maxTime %d", metaFile, model.ErrCorrupt, m.MinTime, m.MaxTime)
	}
	b := Block{ID: m.ULID.String(), MinTime: m.MinTime, MaxTime: m.MaxTime, Series: m.Stats.NumSeries, Samples: m.Stats.NumSamples}
	for name, value := range m.Thanos.Labels {
		if !strings.HasPrefix(name, "__") {
			if b.External == nil {
				b.External = map[string]string{}
			}
			b.External[name] = value
		}
	}
	for _, p := range m.Compaction.Parents {
		b.parents = append(b.parents, p.ULID.String())
	}
	switch {
	case m.Thanos.Downsample.Resolution > 0:
		b.LeftOut = fmt.Sprintf("it is downsampled to one point in %s, which are not samples", time.Duration(m.Thanos.Downsample.Resolution)*time.Millisecond)
	case m.Compaction.Deletable:
		b.LeftOut = "it is empty and marked as deletable"
	}
	return b, nil
}

// splitName splits the name of a file into the folder of its block, that of a tenant, and the rest. ok is
// false if the file is not one of a block.
func splitName(name string) (folder, tenant, file string, ok bool) {
	parts := strings.SplitN(name, "/", 3)
	switch {
	case len(parts) >= 2 && isULID(parts[0]):
		return parts[0], "", strings.Join(parts[1:], "/"), true
	case len(parts) == 3 && isULID(parts[1]):
		return parts[0] + "/" + parts[1], parts[0], parts[2], true
	}
	return "", "", "", false
}

func isULID(text string) bool {
	_, err := ulid.ParseStrict(text)
	return err == nil
}

// sortBlocks sorts blocks by tenant, and then in the order in which they are sent.
func sortBlocks(blocks []Block) {
	slices.SortFunc(blocks, func(a, b Block) int {
		switch {
		case a.Tenant != b.Tenant:
			return strings.Compare(a.Tenant, b.Tenant)
		case a.MinTime != b.MinTime:
			return int(min(max(a.MinTime-b.MinTime, -1), 1))
		}
		return strings.Compare(a.ID, b.ID)
	})
}
