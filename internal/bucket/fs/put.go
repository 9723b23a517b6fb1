package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Put creates or replaces an object.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	return b.put(ctx, name, r, size, func(from, to string) error { return b.fs.Rename(from, to) })
}

// PutIfAbsent creates an object unless the name is taken.
func (b *Bucket) PutIfAbsent(ctx context.Context, name string, data []byte) (created bool, err error) {
	if err := bucket.CheckName(name); err != nil {
		return false, err
	}
	err = b.put(ctx, name, bytes.NewReader(data), int64(len(data)), func(from, to string) error {
		err := b.fs.Link(from, to)
		if errors.Is(err, iofs.ErrExist) {
			// The other writer may not have synced the folder yet; until then a power cut would remove the
			// object.
			return b.fs.Remove(from)
		}
		if err == nil {
			created = true
			err = b.fs.Remove(from)
		}
		return err
	})
	return created && err == nil, err
}

// put writes a temporary file, which publish renames.
func (b *Bucket) put(ctx context.Context, name string, r io.Reader, size int64, publish func(from, to string) error) error {
	if size < 0 {
		return fail("put", name, fmt.Errorf("%w: negative size %d", model.ErrInvalid, size))
	}
	to := b.path(name)
	folder := b.fs.PathDir(to)
	writer, err := b.prepare()
	if err != nil {
		return fail("put", name, err)
	}
	if err := b.ensureFolder(folder); err != nil {
		return fail("put", name, notFolder(err))
	}
	from := b.fs.PathJoin(b.dir, temporary, fmt.Sprintf("%s-%d", writer, b.count.Add(1)))
	err = b.writeFile(ctx, from, r, size)
	if err == nil {
		if info, e := b.fs.Stat(to); e == nil && info.IsDir() {
			err = fmt.Errorf("%w: the name is a prefix (folder) of existing objects", model.ErrInvalid)
		}
	}
	if err == nil {
		if err = publish(from, to); missing(err) {
			// Not the class of a missing object: a retry succeeds.
			err = fmt.Errorf("%w: its temporary file was removed by another process: %v", model.ErrTransient, err)
		}
	}
	if err != nil {
		_ = b.fs.Remove(from) // otherwise the next process removes it
		return fail("put", name, err)
	}
	if err := b.syncFolder(folder); err != nil {
		return fail("put", name, err)
	}
	return nil
}

// notFolder turns the error for a file where a folder is needed into class invalid, since a retry fails as
// well.
func notFolder(err error) error {
	if missing(err) || errors.Is(err, iofs.ErrExist) {
		return fmt.Errorf("%w: a part of the name is an existing object: %v", model.ErrInvalid, err)
	}
	return err
}

// writeFile writes exactly size bytes and syncs them.
func (b *Bucket) writeFile(ctx context.Context, path string, r io.Reader, size int64) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := b.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// Hides ReadFrom of the file and WriteTo of the reader, which ignore ctx.
	n, err := io.Copy(struct{ io.Writer }{f}, &boundReader{ctx: ctx, r: r, left: size})
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("%w: the reader ended after %d of %d bytes", model.ErrInvalid, n, size)
	}
	return f.Sync()
}

// boundReader reads until ctx is done, and fails if the reader has more bytes than announced.
type boundReader struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

func (r *boundReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	// One byte more than is left detects a reader that has more.
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.r.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, fmt.Errorf("%w: the reader has more bytes than were announced", model.ErrInvalid)
	}
	return n, err
}

// ensureFolder creates a folder and its parents, durably, once for each folder and process. It syncs existing
// folders too: the process that created them may have died before its sync.
func (b *Bucket) ensureFolder(path string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.folders[path] {
		return nil
	}
	// The process that created the other parents has made them durable.
	var entries []string
	for at := path; ; {
		above := b.fs.PathDir(at)
		if above == at {
			break
		}
		entries = append(entries, above)
		if _, err := b.fs.Stat(above); err == nil && len(at) <= len(b.dir) {
			break
		}
		at = above
	}
	if err := b.fs.MkdirAll(path, 0o755); err != nil {
		return err
	}
	for _, folder := range entries {
		if err := b.syncFolder(folder); err != nil {
			return err
		}
	}
	b.folders[path] = true
	return nil
}

func (b *Bucket) syncFolder(path string) error {
	d, err := b.fs.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
