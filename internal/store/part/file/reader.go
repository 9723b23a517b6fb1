package file

import (
	"context"
	"fmt"
)

// Reader reads the pages of one file by section, whatever is in them. It holds the footer and takes pages on
// demand. Several goroutines may use it at once.
type Reader struct {
	footer *footer
	pages  Pages
	read   ReadRange
	// size is that of the file, footerOff the offset of the footer, at which the pages end.
	size, footerOff int64
}

// Open reads the footer through read, with one request at the end of the file, or two; pages come from p.
// sections are those that the file must have. Errors are of class corrupt if the file is not a part, or not
// whole, and otherwise what read returns.
func Open(ctx context.Context, p Pages, read ReadRange, size int64, sections Sections) (*Reader, error) {
	f, off, err := fetchFooter(ctx, read, size, sections)
	if err != nil {
		return nil, err
	}
	return &Reader{footer: f, pages: p, read: read, size: size, footerOff: off}, nil
}

// Meta returns what the part says about itself. It must not be changed.
func (r *Reader) Meta() *Meta { return &r.footer.meta }

// Version returns the version of the format that the file has.
func (r *Reader) Version() uint32 { return r.footer.version }

// Size returns the size of the file in bytes.
func (r *Reader) Size() int64 { return r.size }

// FooterOff returns the offset of the stored footer, at which the pages end.
func (r *Reader) FooterOff() int64 { return r.footerOff }

// Pages returns what the reader takes pages from.
func (r *Reader) Pages() Pages { return r.pages }

// Read reads stored bytes of the file.
func (r *Reader) Read(ctx context.Context, off, n int64) ([]byte, error) {
	return r.read(ctx, off, n)
}

// Page returns the payload of a page.
func (r *Reader) Page(ctx context.Context, a Addr) ([]byte, error) { return r.pages.Page(ctx, a) }

// Index returns the index pages of a section, as the footer sums them up.
func (r *Reader) Index(sec *Section) []Entry { return r.footer.index[sec.Number] }

// Bind returns a reader of the same file that takes its pages from p.
func (r *Reader) Bind(p Pages) *Reader {
	bound := *r
	bound.pages = p
	return &bound
}

// FooterBytes is about the memory that the reader holds.
func (r *Reader) FooterBytes() int64 {
	n := int64(len(r.footer.meta.Tenants))*80 + int64(len(r.footer.meta.Sources))*64
	for _, pages := range r.footer.index {
		for i := range pages {
			n += 128 + int64(len(pages[i].Name)+len(pages[i].Value))
		}
	}
	return n
}

// Entries appends the entries of index page i of a section.
func (r *Reader) Entries(ctx context.Context, dst []Entry, sec *Section, i int) ([]Entry, error) {
	e := &r.footer.index[sec.Number][i]
	payload, err := r.indexPayload(ctx, sec, e)
	if err != nil {
		return dst, err
	}
	if dst, err = ReadIndexPage(dst, payload, sec, r.footerOff); err != nil {
		return dst, AtPage(e.Addr, err)
	}
	return dst, nil
}

func (r *Reader) indexPayload(ctx context.Context, sec *Section, e *Entry) ([]byte, error) {
	payload, err := r.Page(ctx, e.Addr)
	if err != nil {
		return nil, fmt.Errorf("part: index page of %s: %w", sec, err)
	}
	return payload, nil
}

// Announce tells the pages which ones will be read, if they are a [Fetcher].
func (r *Reader) Announce(ctx context.Context, list func() ([]Addr, error)) error {
	f, ok := r.pages.(Fetcher)
	if !ok {
		return nil
	}
	pages, err := list()
	if err == nil && len(pages) > 0 {
		f.Fetch(ctx, pages)
	}
	return err
}

// AtPage adds the address of a page to an error.
func AtPage(a Addr, err error) error { return fmt.Errorf("page at %d: %w", a.Off, err) }
