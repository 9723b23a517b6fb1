package part

import (
	"context"
	"fmt"
	"io"
	"sort"
	"sync"

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

func (r *Reader) indexPage(ctx context.Context, dst []pageEntry, sec section, i int) ([]pageEntry, error) {
	e := &r.footer.index[sec][i]
	payload, err := r.pages.Page(ctx, e.addr)
	if err != nil {
		return dst, fmt.Errorf("part: index page of %s: %w", sec, err)
	}
	dst, err = readIndexPage(dst, payload, sec, r.footerOff)
	if err == nil && len(dst) == 0 {
		err = corrupt("empty index page of %s", sec)
	}
	if err != nil {
		return dst, at(e, err)
	}
	return dst, nil
}

func at(e *pageEntry, err error) error { return fmt.Errorf("page at %d: %w", e.addr.Off, err) }

// rankWalk finds the pages of a section by rank. It keeps one index page decoded, so ascending ranks are cheap.
type rankWalk struct {
	ctx     context.Context
	r       *Reader
	section section
	// entries are those of index page number page-1; page 0 means none.
	page    int
	entries []pageEntry
	at      int
	list    *[]pageEntry // whose memory entries are, from entryLists
}

// entryLists keeps the memory of decoded index pages of text, which are long, between walks: of a query for the lines of one app,
// decoding them was a third of the CPU.
var entryLists = sync.Pool{New: func() any { return new([]pageEntry) }}

// release gives up the memory of the walk, which stands nowhere then.
func (w *rankWalk) release() {
	if w.list != nil {
		*w.list = w.entries[:0]
		entryLists.Put(w.list)
		w.page, w.entries, w.list = 0, nil, nil
	}
}

// open decodes index page i, unless it is the current one.
func (w *rankWalk) open(i int) error {
	if w.page == i+1 {
		return nil
	}
	w.page = 0
	if w.list == nil && w.section == textSection {
		w.list = entryLists.Get().(*[]pageEntry)
		w.entries = *w.list
	}
	var err error
	if w.entries, err = w.r.indexPage(w.ctx, w.entries[:0], w.section, i); err != nil {
		return err
	}
	w.page, w.at = i+1, 0
	return nil
}

// find moves to the first page whose last rank is not less than rank. It returns nil if there is none.
func (w *rankWalk) find(rank uint32) (*pageEntry, error) {
	index := w.r.footer.index[w.section]
	if w.page > 0 && w.holds(rank) {
		for w.entries[w.at].last() < rank {
			w.at++
		}
		return &w.entries[w.at], nil
	}
	i := sort.Search(len(index), func(i int) bool { return index[i].last() >= rank })
	if i == len(index) {
		return nil, nil
	}
	if err := w.open(i); err != nil {
		return nil, err
	}
	w.at = sort.Search(len(w.entries), func(i int) bool { return w.entries[i].last() >= rank })
	if w.at == len(w.entries) {
		return nil, corrupt("index page at %d ends before its last rank", index[i].addr.Off)
	}
	return &w.entries[w.at], nil
}

// holds reports whether going forward from the current entry leads to the first page with the rank.
func (w *rankWalk) holds(rank uint32) bool {
	if w.entries[len(w.entries)-1].last() < rank {
		return false
	}
	if w.at > 0 {
		return w.entries[w.at-1].last() < rank
	}
	// The index page before may end in pages of the same rank.
	return w.page == 1 || w.r.footer.index[w.section][w.page-2].last() < rank
}

// following moves to the next page. It returns nil at the end.
func (w *rankWalk) following() (*pageEntry, error) {
	if w.at+1 < len(w.entries) {
		w.at++
		return &w.entries[w.at], nil
	}
	if w.page >= len(w.r.footer.index[w.section]) {
		return nil, nil
	}
	if err := w.open(w.page); err != nil {
		return nil, err
	}
	return &w.entries[0], nil
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
	w.at = max(0, sort.Search(len(w.entries), func(i int) bool { return beyond(&w.entries[i]) })-1)
	e := &w.entries[w.at]
	if e.last() < begin {
		// The tenant begins with the next page.
		return w.seek(begin)
	}
	return e, nil
}

// load returns the payload of a page of the section.
func (w *rankWalk) load(e *pageEntry) ([]byte, error) {
	payload, err := w.r.pages.Page(w.ctx, e.addr)
	if err != nil {
		return nil, fmt.Errorf("part: %s: %w", w.section, err)
	}
	return payload, nil
}
