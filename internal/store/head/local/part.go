package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// Part is an open part of the data folder. Queries hold references. The file is deleted when the
// manifest has dropped the part and the last reference is released.
type Part struct {
	Info   Info
	Reader *part.Reader
	file   vfs.File
	remove func() error
	refs   atomic.Int32
	gone   atomic.Bool // the manifest has dropped it
}

func Open(ctx context.Context, fs vfs.FS, dir string, info Info, pagesRead *atomic.Int64) (*Part, error) {
	name := fs.PathJoin(dir, info.File)
	stat, err := fs.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w: part %s is missing", model.ErrCorrupt, name)
	case err != nil:
		return nil, fmt.Errorf("%w: part %s: %w", model.ErrTransient, name, err)
	case stat.Size() != info.Bytes:
		return nil, fmt.Errorf("%w: part %s: expected %d bytes, got %d", model.ErrCorrupt, name, info.Bytes, stat.Size())
	}
	f, err := fs.Open(name, vfs.RandomReadsOption)
	if err != nil {
		return nil, fmt.Errorf("%w: part %s: %w", model.ErrTransient, name, err)
	}
	r, err := part.OpenWith(ctx, part.FilePages(f, pagesRead), readRange(f), info.Bytes)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("part %s: %w", name, err), f.Close())
	}
	p := &Part{Info: info, Reader: r, file: f, remove: func() error { return fs.Remove(name) }}
	p.refs.Store(1)
	return p, nil
}

func readRange(r io.ReaderAt) part.ReadRange {
	return func(_ context.Context, off, n int64) ([]byte, error) {
		b := make([]byte, n)
		if _, err := r.ReadAt(b, off); err != nil {
			return nil, fmt.Errorf("%w: read %d bytes at %d: %w", model.ErrTransient, n, off, err)
		}
		return b, nil
	}
}

// WrapError adds the name of the part to an error.
func (p *Part) WrapError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("part %s: %w", p.Info.File, err)
}

// localPages reads pages for one request, from the cache or from the file. Merges and ships read the file
// itself, so that damage in it is noticed and does not hide in the cache.
type localPages struct {
	*part.CachedPages
	disk vfs.File
}

var _ part.Prefetcher = localPages{}

// Prefetch asks the kernel to read the pages that are not cached, neighbours in one call. A failure has no
// effect.
func (l localPages) Prefetch(pages []part.Addr) {
	var off, end int64
	for _, a := range pages {
		if l.Has(a) {
			continue
		}
		if a.Off != end {
			l.prefetch(off, end)
			off = a.Off
		}
		end = a.Off + int64(a.Len)
	}
	l.prefetch(off, end)
}

func (l localPages) prefetch(off, end int64) {
	if off < end {
		_ = l.disk.Prefetch(off, end-off)
	}
}

// ReaderFor returns a reader whose pages count as the request's, and come from the cache if there is one.
func (p *Part) ReaderFor(req *model.Request, cache part.Cache) *part.Reader {
	if cache == nil {
		return p.Reader.Bind(part.FilePages(p.file, &req.Cost.PagesDisk))
	}
	// File names are never reused, so they identify pages in the cache.
	fetch := part.FetchFile(p.file, &req.Cost.PagesDisk)
	return p.Reader.Bind(localPages{part.NewCachedPages(cache, "local/"+p.Info.File, fetch, &req.Cost.PagesRAM), p.file})
}

// ChargedReaderFor is ReaderFor, with the request's quota charged for lists of series, names and values.
func (p *Part) ChargedReaderFor(req *model.Request, cache part.Cache) *part.Reader {
	return p.ReaderFor(req, cache).Charged(req.Quota.TakeBytes)
}

func (p *Part) Pin() { p.refs.Add(1) }

// Unpin releases a reference. A file that cannot be deleted is not an error: the next start deletes it.
func (p *Part) Unpin() {
	if p.refs.Add(-1) > 0 {
		return
	}
	_ = p.file.Close()
	if p.gone.Load() {
		_ = p.remove()
	}
}

// Drop releases the reference of the set of parts, after the manifest has dropped the part.
func (p *Part) Drop() {
	p.gone.Store(true)
	p.Unpin()
}

// Writer writes a new part file.
type Writer struct {
	fs   vfs.FS
	Path string
	file vfs.File
	buf  *bufferedFile
	*part.Writer
}

func Create(fs vfs.FS, dir, file string, o part.WriterOptions) (*Writer, error) {
	name := fs.PathJoin(dir, file)
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("%w: part %s: %w", model.ErrTransient, name, err)
	}
	buf := &bufferedFile{f: f}
	return &Writer{fs: fs, Path: name, file: f, buf: buf, Writer: part.NewWriter(buf, o)}, nil
}

// Close makes the part durable, except for its folder entry.
func (w *Writer) Close() (part.Meta, int64, error) {
	meta, size, err := w.Finish()
	if err == nil {
		err = w.buf.flush()
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err = errors.Join(err, w.file.Close()); err != nil {
		_ = w.fs.Remove(w.Path)
		if !errors.Is(err, model.ErrInvalid) && !errors.Is(err, model.ErrCorrupt) {
			err = fmt.Errorf("%w: %w", model.ErrTransient, err)
		}
		return meta, size, fmt.Errorf("part %s: %w", w.Path, err)
	}
	return meta, size, nil
}

// Abandon closes and deletes the file.
func (w *Writer) Abandon() {
	_ = w.file.Close()
	_ = w.fs.Remove(w.Path)
}

// bufferedFile buffers writes, since vfs files do not.
type bufferedFile struct {
	f   vfs.File
	buf []byte
}

func (b *bufferedFile) Write(p []byte) (int, error) {
	b.buf = append(b.buf, p...)
	if len(b.buf) < 256<<10 {
		return len(p), nil
	}
	return len(p), b.flush()
}

func (b *bufferedFile) flush() error {
	_, err := b.f.Write(b.buf)
	b.buf = b.buf[:0]
	return err
}
