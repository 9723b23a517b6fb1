package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Bucket keeps objects as files below a folder. The name of an object is its path, so objects `a` and `a/b`
// cannot both exist; Shale never creates both. Several processes may use a folder.
type Bucket struct {
	fs    vfs.FS
	dir   string
	count atomic.Uint64

	preparing sync.Mutex
	// writer begins the names of temporary files. It is empty until the first of them. lock is held as long as
	// there may be such files, which is until the process ends.
	writer   string
	lock     io.Closer
	prepared bool

	mu sync.Mutex
	// folders are known to be durable. There is an entry for each folder in the names of objects.
	folders map[string]bool
}

var _ bucket.Bucket = (*Bucket)(nil)

// New returns the bucket of a folder. It changes nothing, because the caller takes the lock of the store
// later; the first Put creates a missing folder. If dir exists and is not a folder, the error is of class
// invalid.
func New(fs vfs.FS, dir string) (*Bucket, error) {
	if info, err := fs.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("bucket %s: %w: not a folder", dir, model.ErrInvalid)
	}
	return &Bucket{fs: fs, dir: dir, folders: map[string]bool{}}, nil
}

func fail(op, name string, err error) error {
	switch {
	case missing(err):
		return fmt.Errorf("bucket: %s %s: %w", op, name, bucket.ErrNotFound)
	case errors.Is(err, model.ErrInvalid):
		return fmt.Errorf("bucket: %s %s: %w", op, name, err)
	}
	return fmt.Errorf("bucket: %s %s: %w: %w", op, name, model.ErrTransient, err)
}

// missing reports whether err says that no file has the name, or that a parent in its path is a file.
func missing(err error) bool {
	return errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func (b *Bucket) path(name string) string { return b.fs.PathJoin(b.dir, name) }

// Get returns a whole object.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	return b.read(ctx, "get", name, func(size int64) (int64, int64, error) { return 0, size, nil })
}

// GetRange returns n bytes of an object from off.
func (b *Bucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	return b.read(ctx, "get range of", name, func(size int64) (int64, int64, error) {
		if off < 0 || n < 0 || off > size || n > size-off {
			return 0, 0, fmt.Errorf("%w: %d bytes from %d of %d", model.ErrInvalid, n, off, size)
		}
		return off, n, nil
	})
}

func (b *Bucket) read(ctx context.Context, op, name string, part func(size int64) (off, n int64, err error)) ([]byte, error) {
	if err := bucket.CheckName(name); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fail(op, name, err)
	}
	f, err := b.fs.Open(b.path(name))
	if err != nil {
		return nil, fail(op, name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = iofs.ErrNotExist
	}
	if err != nil {
		return nil, fail(op, name, err)
	}
	off, n, err := part(info.Size())
	if err != nil {
		return nil, fail(op, name, err)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(f, off, n), data); err != nil {
		return nil, fail(op, name, err)
	}
	return data, nil
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fail("delete", name, err)
	}
	path := b.path(name)
	info, err := b.fs.Stat(path)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		err = b.fs.Remove(path)
	}
	if err != nil && !missing(err) {
		return fail("delete", name, err)
	}
	// Also for a missing file: an earlier call may have removed it and failed to sync.
	if err := b.syncFolder(b.fs.PathDir(path)); err != nil && !missing(err) {
		return fail("delete", name, err)
	}
	return nil
}
