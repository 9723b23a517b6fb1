package app

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// closeGrace is how long Close waits for pushes to reach the buffers.
const closeGrace = 3 * time.Second

// lockFolder creates the data folder if it is missing and takes the lock that keeps a second process out.
func lockFolder(fs vfs.FS, dir string) (io.Closer, error) {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: data folder %s: %w", model.ErrTransient, dir, err)
	}
	if err := syncFolder(fs, fs.PathDir(dir)); err != nil {
		return nil, err
	}
	lock, err := fs.Lock(fs.PathJoin(dir, "LOCK"))
	if err != nil {
		return nil, fmt.Errorf("%w: data folder %s is in use by another process: %v", model.ErrInvalid, dir, err)
	}
	return lock, nil
}

func syncFolder(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("%w: folder %s: %w", model.ErrTransient, dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("%w: folder %s: %w", model.ErrTransient, dir, err)
	}
	return nil
}

// withRemedy adds to an error about a damaged local file how to go on.
func withRemedy(err error, dir string) error {
	local := strings.Contains(err.Error(), dir+"/"+headFolder) || strings.Contains(err.Error(), dir+"/"+journalFolder)
	if !errors.Is(err, model.ErrCorrupt) || !local {
		return err
	}
	return fmt.Errorf("%w; see %q in docs/operations.md, or run: shale inspect folder %s --repair", err, "Damaged files in the data folder", dir)
}

// liesIn reports whether the files of a folder count as those of another one. They do also if only a symbolic
// link leads there, from either of them: the size of a data folder includes what its links lead to.
func liesIn(dir, in string) bool {
	below := func(dir, in string) bool {
		rel, err := filepath.Rel(in, dir)
		return err == nil && filepath.IsLocal(rel)
	}
	return below(dir, in) || below(resolved(dir), resolved(in))
}

// resolved follows the symbolic links of a path, as far as it exists.
func resolved(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	above := filepath.Dir(path)
	if above == path {
		return path
	}
	return filepath.Join(resolved(above), filepath.Base(path))
}

// checkAge returns an error of class corrupt if ships in the bucket cover this folder's journal beyond the
// parts of the folder. Rows are shipped from parts alone, so the folder, or its MANIFEST, is an older copy:
// rows may be missing, and deleted ones may come back.
func (e *Engine) checkAge() error {
	covered := e.head.Covered()
	shipped := e.catalog.Progress(e.head.Journal())
	if e.shipper.Resume(shipped); shipped.To > covered {
		return fmt.Errorf("%s: %w: it is an older copy: its parts cover the journal up to record %d, and ships in the bucket up to record %d",
			e.o.FS.PathJoin(e.o.DataDir, "head", "MANIFEST"), model.ErrCorrupt, covered, shipped.To)
	}
	return nil
}
