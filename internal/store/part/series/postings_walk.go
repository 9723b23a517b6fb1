package series

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sort"

	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// postingWalk walks the postings of one tenant in the order of (name, value, first rank).
type postingWalk struct {
	pages  file.Walk
	tenant uint32
	series uint32
	// entry is that of the page that dir walks.
	entry *file.Entry
	dir   postingDir
	// first says that the current posting is the first of its page.
	first, fresh bool
	// payload is that of the page at opened, so that a seek within it does not read it a second time.
	payload []byte
	opened  file.Addr
	memory  *scratch // of the sets that a selection makes; other walks have none
	err     error
}

func newPostingWalk(ctx context.Context, r *file.Reader, tenant *file.Tenant) *postingWalk {
	tenants := r.Meta().Tenants
	ordinal := sort.Search(len(tenants), func(i int) bool { return tenants[i].Name >= tenant.Name })
	return &postingWalk{pages: file.NewWalk(ctx, r, PostingSection), tenant: uint32(ordinal), series: tenant.Series}
}

// compare orders an index entry against (tenant, name, value).
func (w *postingWalk) compare(e *file.Entry, name, value []byte) int {
	if c := cmp.Compare(e.Tenant, w.tenant); c != 0 {
		return c
	}
	return comparePair(e.Name, e.Value, name, value)
}

func comparePair(name, value, otherName, otherValue []byte) int {
	if c := bytes.Compare(name, otherName); c != 0 {
		return c
	}
	return bytes.Compare(value, otherValue)
}

// seek moves to the first posting that is not less than (name, value). It returns false if there is none, or
// on an error.
func (w *postingWalk) seek(name, value []byte) bool {
	if w.err != nil || !w.before(name, value) || !w.openPage() {
		return false
	}
	for w.next() {
		if comparePair(w.dir.name, w.dir.value, name, value) >= 0 {
			return true
		}
	}
	return false
}

// seekOn is seek to a posting that is greater than the current one. It does not decode the open page from its
// beginning.
func (w *postingWalk) seekOn(name, value []byte) bool {
	if w.err != nil {
		return false
	}
	open := w.entry.Addr
	if !w.before(name, value) || w.entry.Addr != open && !w.openPage() {
		return false
	}
	for w.next() {
		if comparePair(w.dir.name, w.dir.value, name, value) >= 0 {
			return true
		}
	}
	return false
}

// next moves to the next posting of the tenant. It returns false at the end or on an error.
func (w *postingWalk) next() bool {
	for w.err == nil {
		if w.dir.tenant > w.tenant {
			return false
		}
		if w.dir.tenant == w.tenant {
			w.first = w.fresh
			w.fresh = false
			ok, err := w.dir.next()
			if err != nil {
				w.err = file.AtPage(w.entry.Addr, err)
				return false
			}
			if ok {
				return true
			}
		}
		if !w.advance() || !w.openPage() {
			return false
		}
	}
	return false
}

// before moves to the last page that begins with less than (name, value), or to the first page. The posting
// is in that page, or begins the next one. It returns false if there is no page, or on an error.
func (w *postingWalk) before(name, value []byte) bool {
	w.entry, w.err = w.pages.Last(func(e *file.Entry) bool { return w.compare(e, name, value) >= 0 })
	return w.entry != nil
}

// advance moves to the next page. It returns false at the end, or on an error.
func (w *postingWalk) advance() bool {
	w.entry, w.err = w.pages.Following()
	return w.entry != nil
}

// openPage opens the page of the current entry.
func (w *postingWalk) openPage() bool {
	w.fresh = true
	e := w.entry
	if w.payload == nil || w.opened != e.Addr {
		var err error
		if w.payload, err = w.pages.Reader.Page(w.pages.Ctx, e.Addr); err != nil {
			w.payload, w.err = nil, fmt.Errorf("part: postings: %w", err)
			return false
		}
		w.opened = e.Addr
	}
	if err := w.dir.decode(w.payload); err != nil {
		w.err = file.AtPage(e.Addr, err)
		return false
	}
	if w.dir.tenant != e.Tenant {
		w.err = file.AtPage(e.Addr, column.Corrupt("page of postings is not the one that the index names"))
	}
	return w.err == nil
}

// lists adds the ranks that have one of some values of a name, which ascend, to a set. It decodes a page
// once, however many of the values it has: a query of Graphite may name ten thousand.
func (w *postingWalk) lists(name []byte, values []string, into *rankUnion) error {
	var value []byte
	for i, v := range values {
		value = append(value[:0], v...)
		found := true
		switch {
		case i == 0:
			found = w.seek(name, value)
		case comparePair(w.dir.name, w.dir.value, name, value) < 0:
			found = w.seekOn(name, value)
		}
		for found && comparePair(w.dir.name, w.dir.value, name, value) == 0 {
			if err := w.ranks(into); err != nil {
				return err
			}
			found = w.next()
		}
		if !found {
			return w.err
		}
	}
	return nil
}

// ranks adds the ranks of the current entry to a set.
func (w *postingWalk) ranks(into *rankUnion) error {
	if err := w.dir.runs(w.series, into.add); err != nil {
		w.err = file.AtPage(w.entry.Addr, err)
	} else {
		w.err = into.err
	}
	return w.err
}

// values calls fn at each entry of a name whose value begins with prefix. fn may read the entry but not move
// the walk.
func (w *postingWalk) values(name, prefix []byte, fn func() error) error {
	if err := w.pages.Reader.Announce(w.pages.Ctx, func() ([]file.Addr, error) { return w.pagesOf(nil, name, prefix, true) }); err != nil {
		return err
	}
	for ok := w.seek(name, prefix); ok; ok = w.next() {
		if !bytes.Equal(w.dir.name, name) || !bytes.HasPrefix(w.dir.value, prefix) {
			return nil
		}
		if err := fn(); err != nil {
			return err
		}
	}
	return w.err
}

// pageNumber estimates the number, in the part, of the page of postings that has (name, value).
func (w *postingWalk) pageNumber(name, value string) (int, error) {
	if !w.before([]byte(name), []byte(value)) {
		return 0, w.err
	}
	return w.pages.PageNumber(), nil
}

// pagesOf appends the pages with postings of the name whose value is, or begins with, the given one.
func (w *postingWalk) pagesOf(dst []file.Addr, name, value []byte, prefix bool) ([]file.Addr, error) {
	if w.err != nil {
		return dst, w.err
	}
	for ok := w.before(name, value); ok; ok = w.advance() {
		e := w.entry
		if w.compare(e, name, value) > 0 && !(prefix && e.Tenant == w.tenant && bytes.Equal(e.Name, name) && bytes.HasPrefix(e.Value, value)) {
			return dst, nil
		}
		dst = append(dst, e.Addr)
	}
	return dst, w.err
}
