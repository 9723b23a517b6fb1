package head

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

// localPart is an open part of the data folder. Queries hold references; the file goes when the manifest has dropped
// the part and the last reference is gone.
type localPart struct {
	info   partInfo
	reader *part.Reader
	file   vfs.File
	remove func() error
	refs   atomic.Int32
	gone   atomic.Bool // the manifest has dropped it
}

func openLocalPart(ctx context.Context, fs vfs.FS, dir string, info partInfo, pagesRead *atomic.Int64) (*localPart, error) {
	name := fs.PathJoin(dir, info.File)
	stat, err := fs.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w: part %s is missing", model.ErrCorrupt, name)
	case err != nil:
		return nil, fmt.Errorf("%w: part %s: %v", model.ErrTransient, name, err)
	case stat.Size() != info.Bytes:
		return nil, fmt.Errorf("%w: part %s has %d bytes and should have %d", model.ErrCorrupt, name, stat.Size(), info.Bytes)
	}
	f, err := fs.Open(name, vfs.RandomReadsOption)
	if err != nil {
		return nil, fmt.Errorf("%w: part %s: %v", model.ErrTransient, name, err)
	}
	r, err := part.OpenWith(ctx, part.FilePages(f, pagesRead), readRange(f), info.Bytes)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("part %s: %w", name, err), f.Close())
	}
	p := &localPart{info: info, reader: r, file: f, remove: func() error { return fs.Remove(name) }}
	p.refs.Store(1)
	return p, nil
}

func readRange(r io.ReaderAt) part.ReadRange {
	return func(_ context.Context, off, n int64) ([]byte, error) {
		b := make([]byte, n)
		if _, err := r.ReadAt(b, off); err != nil {
			return nil, fmt.Errorf("%w: read %d bytes at %d: %v", model.ErrTransient, n, off, err)
		}
		return b, nil
	}
}

// named gives an error the name of the part.
func (p *localPart) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("part %s: %w", p.info.File, err)
}

// PageCache keeps decoded pages. A page is named by its object and its offset there.
type PageCache interface {
	// Page returns a page that must not be changed, and whether fetch was not needed.
	Page(ctx context.Context, object string, off int64, fetch func(context.Context) ([]byte, error)) (page []byte, hit bool, err error)
	// Kept returns a page if it is in the cache.
	Kept(object string, off int64) ([]byte, bool)
	// Has reports whether a page is in the cache, which does not count as a use of it.
	Has(object string, off int64) bool
}

// localPages reads pages for one request: from the cache, or from the file. Merges and ships read the file itself, so that a
// page that has been damaged since it was cached does not spread.
type localPages struct {
	cache  PageCache
	object string
	ends   string // names the ends of its pages
	file   part.Pages
	disk   vfs.File
	cost   *model.Cost
}

var (
	_ part.Lists      = (*localPages)(nil)
	_ part.Ends       = (*localPages)(nil)
	_ part.Prefetcher = (*localPages)(nil)
)

func (l *localPages) Page(ctx context.Context, at part.Addr) ([]byte, error) {
	page, hit, err := l.cache.Page(ctx, l.object, at.Off, func(ctx context.Context) ([]byte, error) { return l.file.Page(ctx, at) })
	if hit {
		l.cost.PagesRAM.Add(1)
	}
	return page, err
}

// PageEnd returns the end of a page of lines. Ends are kept as pages are, beside these.
func (l *localPages) PageEnd(ctx context.Context, at part.Addr, e part.PageEnd) ([]byte, error) {
	file, ok := l.file.(part.Ends)
	if ok && !l.cache.Has(l.object, at.Off) {
		end, hit, err := l.cache.Page(ctx, l.ends, at.Off, func(ctx context.Context) ([]byte, error) { return file.PageEnd(ctx, at, e) })
		if err != nil {
			return nil, err
		}
		if n := len(end) - e.Bytes; n >= 0 {
			if hit {
				l.cost.PagesRAM.Add(1)
			}
			return end[n:], nil
		}
	}
	page, err := l.Page(ctx, at)
	if err != nil {
		return nil, err
	}
	return e.Of(page)
}

// HasEnd reports whether the end of a page of lines, or all of it, is cached.
func (l *localPages) HasEnd(at part.Addr) bool {
	return l.cache.Has(l.ends, at.Off) || l.cache.Has(l.object, at.Off)
}

// Prefetch has the kernel read what is not cached, neighbours at once. That it fails changes nothing.
func (l *localPages) Prefetch(pages []part.Addr) {
	var off, end int64
	for _, a := range pages {
		if l.cache.Has(l.object, a.Off) {
			continue
		}
		if a.Off != end {
			l.read(off, end)
			off = a.Off
		}
		end = a.Off + int64(a.Len)
	}
	l.read(off, end)
}

func (l *localPages) read(off, end int64) {
	if off < end {
		_ = l.disk.Prefetch(off, end-off)
	}
}

// listOffset stands in the place of the offset of a page, for lists.
const listOffset = -1

// List keeps what matchers and filters have found beside the pages.
func (l *localPages) List(ctx context.Context, key string, find func(context.Context) ([]byte, error)) ([]byte, error) {
	list, _, err := l.cache.Page(ctx, l.object+" "+key, listOffset, find)
	return list, err
}

// Kept returns what List has kept.
func (l *localPages) Kept(key string) ([]byte, bool) {
	return l.cache.Kept(l.object+" "+key, listOffset)
}

// countedFor returns a reader whose pages count as the request's, and come from the cache if there is one.
func (p *localPart) countedFor(req *model.Request, cache PageCache) *part.Reader {
	file := part.FilePages(p.file, &req.Cost.PagesDisk)
	if cache == nil {
		return p.reader.Bind(file)
	}
	// Names of files are never used twice.
	object := "local/" + p.info.File
	return p.reader.Bind(&localPages{cache: cache, object: object, ends: object + " end", file: file, disk: p.file, cost: req.Cost})
}

// chargedFor is countedFor, with the request's quota charged for lists of names and values.
func (p *localPart) chargedFor(req *model.Request, cache PageCache) *part.Reader {
	return p.countedFor(req, cache).Charged(req.Quota.TakeBytes)
}

func (p *localPart) pin() { p.refs.Add(1) }

// unpin gives up a reference. Failing to delete a file that nothing refers to any more is no error: the next start
// deletes it.
func (p *localPart) unpin() {
	if p.refs.Add(-1) > 0 {
		return
	}
	_ = p.file.Close()
	if p.gone.Load() {
		_ = p.remove()
	}
}

// drop gives up the head's own reference after the manifest has dropped the part.
func (p *localPart) drop() {
	p.gone.Store(true)
	p.unpin()
}

// partWriter writes a new part file.
type partWriter struct {
	fs   vfs.FS
	name string
	file vfs.File
	buf  *bufferedFile
	*part.Writer
}

func createPart(fs vfs.FS, dir, file string, o part.WriterOptions) (*partWriter, error) {
	name := fs.PathJoin(dir, file)
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("%w: part %s: %v", model.ErrTransient, name, err)
	}
	buf := &bufferedFile{f: f}
	return &partWriter{fs: fs, name: name, file: f, buf: buf, Writer: part.NewWriter(buf, o)}, nil
}

// finish makes the part durable, but for its folder entry.
func (w *partWriter) finish() (part.Meta, int64, error) {
	meta, size, err := w.Finish()
	if err == nil {
		err = w.buf.flush()
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err = errors.Join(err, w.file.Close()); err != nil {
		_ = w.fs.Remove(w.name)
		if !errors.Is(err, model.ErrInvalid) && !errors.Is(err, model.ErrCorrupt) {
			err = fmt.Errorf("%w: %v", model.ErrTransient, err)
		}
		return meta, size, fmt.Errorf("part %s: %w", w.name, err)
	}
	return meta, size, nil
}

// abandon deletes what has been written.
func (w *partWriter) abandon() {
	_ = w.file.Close()
	_ = w.fs.Remove(w.name)
}

// bufferedFile gathers writes; vfs files have none of their own.
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
