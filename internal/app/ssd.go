package app

import (
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
)

// ssdOptions returns the options of the cache on an SSD, or nil if there is to be none. Its files would count
// as data in a folder with data, so it stays apart from these.
func ssdOptions(c *config.Config, disk vfs.FS, apart ...string) (*ssd.Options, error) {
	if c.SSD.Dir == "" {
		return nil, nil
	}
	dir, err := filepath.Abs(c.SSD.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: cache.ssd %s: %v", model.ErrInvalid, c.SSD.Dir, err)
	}
	for _, other := range apart {
		if liesIn(dir, other) || liesIn(other, dir) {
			return nil, fmt.Errorf("%w: cache.ssd %s: expected a folder apart from the data folder and the bucket, got one in or above %s", model.ErrInvalid, dir, other)
		}
	}
	return &ssd.Options{FS: disk, Dir: dir, MaxBytes: c.SSD.Bytes, Limits: c.CacheSSD}, nil
}
