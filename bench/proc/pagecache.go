package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// DropPageCache makes the kernel forget what it has read of the files of a folder: all that it can if this process may, else of
// these files what is no longer to be written. Its error says that neither could be done.
func DropPageCache(dir string) error {
	unix.Sync()
	if os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0) == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
	})
}
