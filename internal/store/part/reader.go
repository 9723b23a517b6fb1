package part

import (
	"context"
	"fmt"
	"io"
	"math"
	"sort"

	"github.com/shaledb/shale/internal/model"
)

// ReadRange reads exactly n bytes at an offset of a file or an object.
type ReadRange func(ctx context.Context, off, n int64) ([]byte, error)

// Reader reads one part. It holds the footer, takes pages on demand and may be used by several goroutines; its cursors
// may not.
type Reader struct {
	footer *footer
	pages  Pages
	read   ReadRange
	// size is that of the file, footerOff the offset of the footer, at which the pages end.
	size, footerOff int64
	// charge, if set, is asked for the memory of label lists.
	charge func(bytes int64) error
}

// Open reads the footer of a file. Pages are read from the file each time.
func Open(ctx context.Context, r io.ReaderAt, size int64) (*Reader, error) {
	return OpenWith(ctx, FilePages(r, nil), RangeOf(r), size)
}

// RangeOf makes a [ReadRange] of a file.
func RangeOf(r io.ReaderAt) ReadRange {
	return func(ctx context.Context, off, n int64) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return readFull(r, off, n)
	}
}

// OpenWith reads the footer through read, with one request at the end of the object, or two; pages come from p. Errors
// are of class corrupt if the object is no part, or not whole, and otherwise what read returns.
func OpenWith(ctx context.Context, p Pages, read ReadRange, size int64) (*Reader, error) {
	f, off, err := fetchFooter(ctx, read, size)
	if err != nil {
		return nil, err
	}
	return &Reader{footer: f, pages: p, read: read, size: size, footerOff: off}, nil
}

// Meta returns what the part says of itself. It must not be changed.
func (r *Reader) Meta() *Meta { return &r.footer.meta }

// Size returns the size of the file in bytes.
func (r *Reader) Size() int64 { return r.size }

// Bind returns a reader of the same part that takes its pages from p.
func (r *Reader) Bind(p Pages) *Reader {
	bound := *r
	bound.pages = p
	return &bound
}

// FooterBytes is about what the open reader holds in memory.
func (r *Reader) FooterBytes() int64 {
	n := int64(len(r.footer.meta.Tenants))*80 + int64(len(r.footer.meta.Sources))*64
	for _, pages := range r.footer.index {
		for i := range pages {
			n += 128 + int64(len(pages[i].name)+len(pages[i].value))
		}
	}
	return n
}

// indexPage decodes an index page whole.
func (r *Reader) indexPage(ctx context.Context, dst []pageEntry, sec section, i int) ([]pageEntry, error) {
	e := &r.footer.index[sec][i]
	payload, err := r.indexPayload(ctx, sec, e)
	if err != nil {
		return dst, err
	}
	if dst, err = readIndexPage(dst, payload, sec, r.footerOff); err != nil {
		return dst, at(e, err)
	}
	return dst, nil
}

func (r *Reader) indexPayload(ctx context.Context, sec section, e *pageEntry) ([]byte, error) {
	payload, err := r.pages.Page(ctx, e.addr)
	if err != nil {
		return nil, fmt.Errorf("part: index page of %s: %w", sec, err)
	}
	return payload, nil
}

func at(e *pageEntry, err error) error { return fmt.Errorf("page at %d: %w", e.addr.Off, err) }

// rankWalk finds the pages of a section by rank. It keeps one index page open, so ascending ranks are cheap.
type rankWalk struct {
	ctx     context.Context
	r       *Reader
	section section
	// index is index page number page-1; page 0 means none.
	page  int
	index indexDir
	// least is the rank from which on the current entry is the first that ends no earlier.
	least uint32

	// copies is for a walk that goes on for as long as a merge: pages may be pieces of megabytes that were read ahead.
	copies bool
	copied []byte
}

// open opens index page i, unless it is the current one.
func (w *rankWalk) open(i int) error {
	if w.page == i+1 {
		return nil
	}
	w.page = 0
	e := &w.r.footer.index[w.section][i]
	payload, err := w.r.indexPayload(w.ctx, w.section, e)
	if err != nil {
		return err
	}
	if w.copies {
		w.copied = append(w.copied[:0], payload...)
		payload = w.copied
	}
	if err := w.index.open(payload, w.section, w.r.footerOff); err != nil {
		return at(e, err)
	}
	w.page = i + 1
	return nil
}

// find moves to the first page whose last rank is not less than rank. It returns nil if there is none.
func (w *rankWalk) find(rank uint32) (*pageEntry, error) {
	if w.page > 0 && w.least <= rank {
		// Ranks mostly lie in the page where the one before was, or in the next.
		if last := w.index.entry.last(); last < rank && w.index.at+1 < w.index.count {
			if err := w.index.next(); err != nil {
				return nil, w.failed(err)
			}
			w.least = last + 1
		}
		if rank <= w.index.entry.last() {
			return &w.index.entry, nil
		}
	}
	index := w.r.footer.index[w.section]
	i := sort.Search(len(index), func(i int) bool { return index[i].last() >= rank })
	if i == len(index) {
		return nil, nil
	}
	if err := w.open(i); err != nil {
		return nil, err
	}
	found, err := w.index.search(func(e *pageEntry) bool { return e.last() >= rank })
	if err == nil && !found {
		err = corrupt("index page ends before its last rank")
	}
	if err != nil {
		return nil, w.failed(err)
	}
	w.least = rank
	return &w.index.entry, nil
}

// failed names the index page in which something is wrong.
func (w *rankWalk) failed(err error) error {
	e := &w.r.footer.index[w.section][w.page-1]
	w.page = 0
	return at(e, err)
}

// following moves to the next page. It returns nil at the end.
func (w *rankWalk) following() (*pageEntry, error) {
	before, last := w.index.coder, w.index.entry.last()
	var err error
	switch {
	case w.index.at+1 < w.index.count:
		err = w.index.next()
	case w.page >= len(w.r.footer.index[w.section]):
		return nil, nil
	default:
		if err := w.open(w.page); err != nil {
			return nil, err
		}
		if err = w.index.head(0); err == nil {
			err = w.index.follows(&before)
		}
	}
	if err != nil {
		return nil, w.failed(err)
	}
	w.least = last + 1
	return &w.index.entry, nil
}

// seek returns the page that covers a rank, of a section that covers all ranks.
func (w *rankWalk) seek(rank uint32) (*pageEntry, error) {
	e, err := w.find(rank)
	if err == nil && (e == nil || e.rank0 > rank) {
		return nil, corrupt("no page of %s covers rank %d", w.section, rank)
	}
	return e, err
}

// seekKey returns the page of keys of the ranks [begin, end) in which the first key that is not less than k stands, or
// which it follows.
func (w *rankWalk) seekKey(begin, end uint32, k model.Key) (*pageEntry, error) {
	// A page is beyond if it begins with a greater key, or belongs to a later tenant. Index pages and pages that begin
	// before the tenant are never beyond.
	beyond := func(e *pageEntry) bool {
		return e.rank0 >= end || e.rank0 > begin && k.Less(e.key)
	}
	index := w.r.footer.index[w.section]
	i := sort.Search(len(index), func(i int) bool { return beyond(&index[i]) }) - 1
	if i < 0 {
		return nil, corrupt("no page of keys covers rank %d", begin)
	}
	if err := w.open(i); err != nil {
		return nil, err
	}
	if err := w.index.searchLast(beyond); err != nil {
		return nil, w.failed(err)
	}
	e := &w.index.entry
	if w.least = e.rank0; e.last() < begin {
		// The tenant begins with the next page.
		return w.seek(begin)
	}
	return e, nil
}

// entry moves to an entry of an index page. Ranks are found anew from there.
func (w *rankWalk) entry(page, i int) (*pageEntry, error) {
	if err := w.open(page); err != nil {
		return nil, err
	}
	if err := w.index.seek(i); err != nil {
		return nil, w.failed(err)
	}
	w.least = math.MaxUint32
	return &w.index.entry, nil
}

// load returns the payload of a page of the section.
func (w *rankWalk) load(e *pageEntry) ([]byte, error) {
	payload, err := w.r.pages.Page(w.ctx, e.addr)
	if err != nil {
		return nil, fmt.Errorf("part: %s: %w", w.section, err)
	}
	return payload, nil
}
