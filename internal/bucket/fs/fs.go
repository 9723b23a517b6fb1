package fs

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// temporary is the folder of files that are not yet objects. No object can have a name that begins with a dot.
const temporary = ".tmp"

// Bucket keeps objects as files below a folder. An object's name is its path. Where an object `a` is, none can be named
// `a/b`, nor the other way round; Shale has no such names. One process uses a folder at one time.
type Bucket struct {
	fs    vfs.FS
	dir   string
	run   string // tells the temporary files of this process from leftovers
	count atomic.Uint64

	preparing sync.Mutex
	prepared  bool

	mu sync.Mutex
	// folders are known to be durable. There are as many as there are different folders in names of objects.
	folders map[string]bool
}

var _ bucket.Bucket = (*Bucket)(nil)

// New returns the bucket of a folder, which is made by the first Put if it is not there. It changes nothing, since
// whoever opens a store takes the store's lock later. It is an error of class invalid if dir is something else than a
// folder.
func New(fs vfs.FS, dir string) (*Bucket, error) {
	if info, err := fs.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("bucket %s: %w: not a folder", dir, model.ErrInvalid)
	}
	var run [4]byte
	for i := range run {
		run[i] = byte(rand.Uint32())
	}
	return &Bucket{fs: fs, dir: dir, run: hex.EncodeToString(run[:]), folders: map[string]bool{}}, nil
}

// prepare makes the folder of temporary files before the first of them, and removes what an earlier process left
// half-written in it.
func (b *Bucket) prepare() error {
	b.preparing.Lock()
	defer b.preparing.Unlock()
	if b.prepared {
		return nil
	}
	dir := b.fs.PathJoin(b.dir, temporary)
	if err := b.ensureFolder(dir); err != nil {
		return err
	}
	leftovers, err := b.fs.List(dir)
	for _, name := range leftovers {
		err = errors.Join(err, b.fs.Remove(b.fs.PathJoin(dir, name)))
	}
	b.prepared = err == nil
	return err
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

// missing says that there is no file of the name, because none has it or because a file stands where a folder would be.
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
	// Also when there is no file: an earlier call may have removed it and failed to sync.
	if err := b.syncFolder(b.fs.PathDir(path)); err != nil && !missing(err) {
		return fail("delete", name, err)
	}
	return nil
}
