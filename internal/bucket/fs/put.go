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

// Put makes or replaces an object.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	if err := bucket.CheckName(name); err != nil {
		return err
	}
	return b.put(ctx, name, r, size, func(from, to string) error { return b.fs.Rename(from, to) })
}

// PutIfAbsent makes an object unless there is one.
func (b *Bucket) PutIfAbsent(ctx context.Context, name string, data []byte) (created bool, err error) {
	if err := bucket.CheckName(name); err != nil {
		return false, err
	}
	err = b.put(ctx, name, bytes.NewReader(data), int64(len(data)), func(from, to string) error {
		err := b.fs.Link(from, to)
		if errors.Is(err, iofs.ErrExist) {
			// The other one may not have synced the folder yet, and then a power cut would take the object after all.
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

// put writes a temporary file and lets publish give it its name.
func (b *Bucket) put(ctx context.Context, name string, r io.Reader, size int64, publish func(from, to string) error) error {
	if size < 0 {
		return fail("put", name, fmt.Errorf("%w: a size of %d", model.ErrInvalid, size))
	}
	to := b.path(name)
	folder := b.fs.PathDir(to)
	if err := b.prepare(); err != nil {
		return fail("put", name, err)
	}
	if err := b.ensureFolder(folder); err != nil {
		return fail("put", name, notFolder(err))
	}
	from := b.fs.PathJoin(b.dir, temporary, fmt.Sprintf("%s-%d", b.run, b.count.Add(1)))
	err := b.writeFile(ctx, from, r, size)
	if err == nil {
		if info, e := b.fs.Stat(to); e == nil && info.IsDir() {
			err = fmt.Errorf("%w: there are objects whose names go on after this one", model.ErrInvalid)
		}
	}
	if err == nil {
		err = publish(from, to)
	}
	if err != nil {
		_ = b.fs.Remove(from) // what cannot be removed now is removed when the bucket is opened again
		return fail("put", name, err)
	}
	if err := b.syncFolder(folder); err != nil {
		return fail("put", name, err)
	}
	return nil
}

// notFolder says of an error that a file stands where a folder is needed; it can succeed at no other time.
func notFolder(err error) error {
	if missing(err) || errors.Is(err, iofs.ErrExist) {
		return fmt.Errorf("%w: an object has a part of this name: %v", model.ErrInvalid, err)
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
	// A file's own ReadFrom or a reader's WriteTo would not look at ctx.
	n, err := io.Copy(struct{ io.Writer }{f}, &boundReader{ctx: ctx, r: r, left: size})
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("%w: the reader ended after %d of %d bytes", model.ErrInvalid, n, size)
	}
	return f.Sync()
}

// boundReader reads until ctx is done, and fails if there is more than there should be.
type boundReader struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

func (r *boundReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	// One byte more than is left, so that a reader which has more is found out.
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.r.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, fmt.Errorf("%w: the reader has more bytes than were announced", model.ErrInvalid)
	}
	return n, err
}

// ensureFolder makes a folder and everything above it, durably. It does so once for each folder in the life of the
// bucket, whether the folder is there or not: the process that made it may have died before it synced.
func (b *Bucket) ensureFolder(path string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.folders[path] {
		return nil
	}
	// The folders above those that are new have been made durable by whoever made them.
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
