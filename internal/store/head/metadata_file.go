package head

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// metadataName is the file with the descriptions of metric families. It is replaced as a whole when they have changed.
const metadataName = "METADATA"

const metadataVersion = 1

// metadataEvery is how often the file is replaced at most: senders that disagree about a family change it all the time.
const metadataEvery = time.Minute

// metadataFile is the content of the file: JSON after a line with the checksum of it.
type metadataFile struct {
	Version int                                `json:"version"`
	Tenants map[string]map[string]metadataText `json:"tenants"`
}

// metadataText is type, help and unit.
type metadataText [3]string

// readMetadata returns nil if there is no file.
func readMetadata(fs vfs.FS, dir string) (*metadataFile, error) {
	name := fs.PathJoin(dir, metadataName)
	body, err := readChecked(fs, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := new(metadataFile)
	if err := json.Unmarshal(body, f); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", model.ErrCorrupt, name, err)
	}
	if f.Version != metadataVersion {
		return nil, fmt.Errorf("%w: %s has version %d and this program knows %d", model.ErrInvalid, name, f.Version, metadataVersion)
	}
	return f, nil
}

// loadMetadata fills the map from the file. Without a file that can be read it begins empty, since senders tell
// everything again.
func (h *Head) loadMetadata() {
	now := h.o.Now()
	f, err := readMetadata(h.o.FS, h.o.Dir)
	if err != nil {
		h.o.Logger.Error("the descriptions of metric families cannot be read and are collected anew", "err", err)
	}
	if f == nil {
		return
	}
	for tenant, families := range f.Tenants {
		for family, text := range families {
			// What a lower limit leaves no room for is gone.
			_ = h.about.put(tenant, family, model.Metadata{Type: text[0], Help: text[1], Unit: text[2]}, now)
		}
	}
	h.about.changed = false
}

// saveMetadata replaces the file if the map has changed, and not too often unless it must. An error is not passed on: the
// next flush tries again, and must not fail because of this.
func (h *Head) saveMetadata(must bool) {
	f := h.about.take(h.o.Now(), must)
	if f == nil {
		return
	}
	body, err := json.Marshal(f)
	if err == nil {
		err = replaceChecked(h.o.FS, h.o.Dir, metadataName, body)
	}
	if err != nil {
		h.about.mu.Lock()
		h.about.changed = true
		h.about.mu.Unlock()
		h.metrics.workErrors.Inc()
		h.o.Logger.Error("the descriptions of metric families could not be written; this is tried again", "err", err)
	}
}

// take returns what is to be written now, or nil.
func (md *metadata) take(now int64, must bool) *metadataFile {
	md.mu.Lock()
	defer md.mu.Unlock()
	if passed := now - md.written; !md.changed || !must && 0 <= passed && passed < int64(metadataEvery) {
		return nil
	}
	md.changed, md.written = false, now
	f := &metadataFile{Version: metadataVersion, Tenants: make(map[string]map[string]metadataText, len(md.tenants))}
	for tenant, t := range md.tenants {
		if len(t.families) == 0 {
			continue
		}
		families := make(map[string]metadataText, len(t.families))
		for family, d := range t.families {
			families[family] = metadataText{d.Type, d.Help, d.Unit}
		}
		f.Tenants[tenant] = families
	}
	return f
}
