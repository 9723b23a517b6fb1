package part

import (
	"context"
	"fmt"
)

// fileReader reads the pages of one file by section, whatever is in them. It holds the footer and takes pages on demand.
// Several goroutines may use it at once.
type fileReader struct {
	footer *footer
	pages  Pages
	read   ReadRange
	// size is that of the file, footerOff the offset of the footer, at which the pages end.
	size, footerOff int64
}

// openFile reads the footer through read, with one request at the end of the file, or two; pages come from p. sections
// are those that the file must have. Errors are of class corrupt if the file is not a part, or not whole, and otherwise
// what read returns.
func openFile(ctx context.Context, p Pages, read ReadRange, size int64, sections sectionList) (*fileReader, error) {
	f, off, err := fetchFooter(ctx, read, size, sections)
	if err != nil {
		return nil, err
	}
	return &fileReader{footer: f, pages: p, read: read, size: size, footerOff: off}, nil
}

// Meta returns what the part says about itself. It must not be changed.
func (r *fileReader) Meta() *Meta { return &r.footer.meta }

// Size returns the size of the file in bytes.
func (r *fileReader) Size() int64 { return r.size }

// FooterOff returns the offset of the stored footer, at which the pages end.
func (r *fileReader) FooterOff() int64 { return r.footerOff }

// Pages returns what the reader takes pages from.
func (r *fileReader) Pages() Pages { return r.pages }

// Read reads stored bytes of the file.
func (r *fileReader) Read(ctx context.Context, off, n int64) ([]byte, error) {
	return r.read(ctx, off, n)
}

// Page returns the payload of a page.
func (r *fileReader) Page(ctx context.Context, a Addr) ([]byte, error) { return r.pages.Page(ctx, a) }

// Index returns the index pages of a section, as the footer sums them up.
func (r *fileReader) Index(sec *section) []pageEntry { return r.footer.index[sec.number] }

// Bind returns a reader of the same file that takes its pages from p.
func (r *fileReader) Bind(p Pages) *fileReader {
	bound := *r
	bound.pages = p
	return &bound
}

// FooterBytes is about the memory that the reader holds.
func (r *fileReader) FooterBytes() int64 {
	n := int64(len(r.footer.meta.Tenants))*80 + int64(len(r.footer.meta.Sources))*64
	for _, pages := range r.footer.index {
		for i := range pages {
			n += 128 + int64(len(pages[i].name)+len(pages[i].value))
		}
	}
	return n
}

// Entries appends the entries of index page i of a section.
func (r *fileReader) Entries(ctx context.Context, dst []pageEntry, sec *section, i int) ([]pageEntry, error) {
	e := &r.footer.index[sec.number][i]
	payload, err := r.indexPayload(ctx, sec, e)
	if err != nil {
		return dst, err
	}
	if dst, err = readIndexPage(dst, payload, sec, r.footerOff); err != nil {
		return dst, atPage(e.addr, err)
	}
	return dst, nil
}

func (r *fileReader) indexPayload(ctx context.Context, sec *section, e *pageEntry) ([]byte, error) {
	payload, err := r.Page(ctx, e.addr)
	if err != nil {
		return nil, fmt.Errorf("part: index page of %s: %w", sec, err)
	}
	return payload, nil
}

// Announce tells the pages which ones will be read, if they are a [Fetcher].
func (r *fileReader) Announce(ctx context.Context, list func() ([]Addr, error)) error {
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

// atPage adds the address of a page to an error.
func atPage(a Addr, err error) error { return fmt.Errorf("page at %d: %w", a.Off, err) }
