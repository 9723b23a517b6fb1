package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

// DiskSize returns the size of the file system of a folder, which need not exist yet.
func DiskSize(dir string) (int64, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	for {
		var st syscall.Statfs_t
		err := syscall.Statfs(dir, &st)
		if err == nil {
			return int64(st.Blocks) * int64(st.Bsize), nil
		}
		up := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || up == dir {
			return 0, fmt.Errorf("size of the file system of %s: %w", dir, err)
		}
		dir = up
	}
}
