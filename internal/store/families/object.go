package families

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/catalog/checksum"
	"github.com/shaledb/shale/internal/store/head/metadata"
)

const (
	version = 1
	suffix  = ".json"
)

// file is the content of an object: JSON after a line with its checksum.
type file struct {
	Version int `json:"version"`
	// Written is in Unix nanoseconds.
	Written int64                      `json:"written"`
	Tenants map[string]map[string]text `json:"tenants"`
}

// text is what an object has of a family.
type text struct {
	Type string `json:"type,omitempty"`
	Help string `json:"help,omitempty"`
	Unit string `json:"unit,omitempty"`
	Seen int64  `json:"seen"` // Unix nanoseconds
}

// object is the name of an object.
type object struct {
	writer string
	number uint64
}

func (o object) name() string {
	return fmt.Sprintf("%s%s-%d%s", catalog.FamilyPrefix, o.writer, o.number, suffix)
}

// parseName returns the parts of a name; ok is false for names of other objects.
func parseName(name string) (o object, ok bool) {
	name, ok = strings.CutSuffix(strings.TrimPrefix(name, catalog.FamilyPrefix), suffix)
	writer, number, found := strings.Cut(name, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	return object{writer, n}, ok && found && writer != "" && err == nil
}

// list returns the last object of each writer, and those that have a successor.
func list(ctx context.Context, b bucket.Bucket) (last map[string]object, old []object, err error) {
	last = map[string]object{}
	err = b.List(ctx, catalog.FamilyPrefix, func(name string, _ int64) error {
		o, ok := parseName(name)
		if !ok {
			return nil
		}
		if have, ok := last[o.writer]; ok {
			if have.number > o.number {
				o, have = have, o
			}
			old = append(old, have)
		}
		last[o.writer] = o
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("descriptions of metric families: %w", err)
	}
	return last, old, nil
}

// encode returns the content of an object.
func encode(all []metadata.Described, now int64) ([]byte, error) {
	f := file{Version: version, Written: now, Tenants: map[string]map[string]text{}}
	for _, d := range all {
		if f.Tenants[d.Tenant] == nil {
			f.Tenants[d.Tenant] = map[string]text{}
		}
		f.Tenants[d.Tenant][d.Family] = text{d.Type, d.Help, d.Unit, d.Seen}
	}
	body, err := json.Marshal(&f)
	return checksum.Seal(append(body, '\n')), err
}

// decode reads the content of an object.
func decode(name string, data []byte) (written int64, all []metadata.Described, err error) {
	body, err := checksum.Unseal(data)
	var f file
	if err == nil {
		err = json.Unmarshal(body, &f)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	}
	if f.Version != version {
		return 0, nil, fmt.Errorf("%s: %w: expected version %d, got %d", name, model.ErrInvalid, version, f.Version)
	}
	for tenant, families := range f.Tenants {
		for family, x := range families {
			all = append(all, metadata.Described{Tenant: tenant, Family: family, Metadata: model.Metadata{Type: x.Type, Help: x.Help, Unit: x.Unit}, Seen: x.Seen})
		}
	}
	return f.Written, all, nil
}

// load reads an object. found is false if its writer has just replaced it.
func load(ctx context.Context, b bucket.Bucket, o object) (written int64, all []metadata.Described, found bool, err error) {
	data, err := b.Get(ctx, o.name())
	if errors.Is(err, bucket.ErrNotFound) {
		return 0, nil, false, nil
	}
	if err != nil {
		return 0, nil, false, fmt.Errorf("%s: %w", o.name(), err)
	}
	written, all, err = decode(o.name(), data)
	return written, all, err == nil, err
}
