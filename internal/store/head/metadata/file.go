package metadata

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
)

// FileName is the name of the file, which is replaced as a whole when the metadata has changed.
const FileName = "METADATA"

const metadataVersion = 1

// saveEvery is the least time between replacements of the file: senders that disagree about a family change
// it all the time.
const saveEvery = time.Minute

// metadataFile is the content of the file: JSON after a line with its checksum.
type metadataFile struct {
	Version int `json:"version"`
	// Saves counts how often the file was replaced. It tells which of the file and its copy is older.
	Saves   uint64                             `json:"saves"`
	Tenants map[string]map[string]metadataText `json:"tenants"`
}

// metadataText is type, help and unit.
type metadataText [3]string

// readFile returns the content of the file or, if damaged is not nil, that of its copy. A file that is older
// than its copy counts as damaged: the file is the first of the two to be replaced.
func readFile(fs vfs.FS, dir string) (f *metadataFile, damaged, err error) {
	name := fs.PathJoin(dir, FileName)
	body, damaged, err := local.ReadChecked(fs, dir, FileName)
	if err != nil {
		return nil, nil, err
	}
	if f, err = parseFile(name, body); err != nil || damaged != nil {
		return f, damaged, err
	}
	if body, err := local.ReadCopy(fs, dir, FileName); err == nil {
		if newer, err := parseFile(name, body); err == nil && newer.Saves > f.Saves {
			return newer, fmt.Errorf("%w: %s has the number %d, its copy has %d", model.ErrCorrupt, name, f.Saves, newer.Saves), nil
		}
	}
	return f, nil, nil
}

func parseFile(name string, body []byte) (*metadataFile, error) {
	f := new(metadataFile)
	if err := json.Unmarshal(body, f); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", model.ErrCorrupt, name, err)
	}
	if f.Version != metadataVersion {
		return nil, fmt.Errorf("%w: %s: expected version %d, got %d", model.ErrInvalid, name, metadataVersion, f.Version)
	}
	return f, nil
}

// Check returns what is wrong with the file and its copy.
func Check(fs vfs.FS, dir string) error {
	if err := local.CheckBoth(fs, dir, FileName); err != nil {
		return err
	}
	_, damaged, err := readFile(fs, dir)
	return errors.Join(damaged, err)
}

// Load fills the map from the file. If damaged is not nil, the file is damaged and the map is that of the
// copy. With an error the map stays empty; if there is no file, the error wraps os.ErrNotExist.
func (md *Map) Load(fs vfs.FS, dir string, now int64) (damaged, err error) {
	f, damaged, err := readFile(fs, dir)
	if err != nil {
		return nil, err
	}
	for tenant, families := range f.Tenants {
		for family, text := range families {
			// A lower limit than before drops what exceeds it.
			_ = md.Put(tenant, family, model.Metadata{Type: text[0], Help: text[1], Unit: text[2]}, now)
		}
	}
	md.mu.Lock()
	defer md.mu.Unlock()
	md.changed, md.saves = false, f.Saves
	return damaged, nil
}

// Replace writes the file, whether the map has changed or not. The next Save does not wait.
func (md *Map) Replace(fs vfs.FS, dir string) error {
	md.mu.Lock()
	md.changed = true
	md.mu.Unlock()
	return md.Save(fs, dir, 0, true)
}

// Save replaces the file if the map has changed, and at most once per metadataEvery unless forced. After an
// error the next call tries again.
func (md *Map) Save(fs vfs.FS, dir string, now int64, force bool) error {
	f := md.changes(now, force)
	if f == nil {
		return nil
	}
	body, err := json.Marshal(f)
	if err == nil {
		err = local.ReplaceChecked(fs, dir, FileName, body)
	}
	if err != nil {
		md.mu.Lock()
		defer md.mu.Unlock()
		md.changed = true
	}
	return err
}

// changes returns the content to write now, or nil.
func (md *Map) changes(now int64, force bool) *metadataFile {
	md.mu.Lock()
	defer md.mu.Unlock()
	if passed := now - md.written; !md.changed || !force && 0 <= passed && passed < int64(saveEvery) {
		return nil
	}
	md.changed, md.written = false, now
	md.saves++
	f := &metadataFile{Version: metadataVersion, Saves: md.saves, Tenants: make(map[string]map[string]metadataText, len(md.tenants))}
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
