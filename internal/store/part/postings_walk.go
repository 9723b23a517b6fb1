package part

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sort"
)

// postingWalk walks the postings of one tenant in the order of (name, value, first rank).
type postingWalk struct {
	ctx    context.Context
	r      *Reader
	tenant uint32
	series uint32
	// index is index page number page-1; page 0 means none.
	page  int
	index indexDir
	dir   postingDir
	// first says that the current entry is the first of its page.
	first, fresh bool
	// payload is that of the page at opened, so that a seek within it does not read it again.
	payload []byte
	opened  Addr
	err     error
}

func (r *Reader) postings(ctx context.Context, tenant *Tenant) *postingWalk {
	ordinal := sort.Search(len(r.footer.meta.Tenants), func(i int) bool { return r.footer.meta.Tenants[i].Name >= tenant.Name })
	return &postingWalk{ctx: ctx, r: r, tenant: uint32(ordinal), series: tenant.Series}
}

// compare orders an index entry against (tenant, name, value).
func (w *postingWalk) compare(e *pageEntry, name, value []byte) int {
	if c := cmp.Compare(e.tenant, w.tenant); c != 0 {
		return c
	}
	return comparePair(e.name, e.value, name, value)
}

func comparePair(name, value, otherName, otherValue []byte) int {
	if c := bytes.Compare(name, otherName); c != 0 {
		return c
	}
	return bytes.Compare(value, otherValue)
}

// seek moves to the first entry that is not less than (name, value). It returns false if there is none, or on an error.
func (w *postingWalk) seek(name, value []byte) bool {
	if w.err != nil {
		return false
	}
	index := w.r.footer.index[postingSection]
	if len(index) == 0 {
		return false
	}
	// The entry may stand in the last page that begins with less, or begin the one after it.
	i := sort.Search(len(index), func(i int) bool { return w.compare(&index[i], name, value) >= 0 })
	if !w.openIndex(max(0, i-1)) || !w.before(name, value) || !w.openPage() {
		return false
	}
	for w.next() {
		if comparePair(w.dir.name, w.dir.value, name, value) >= 0 {
			return true
		}
	}
	return false
}

// next moves to the next entry of the tenant. It returns false at the end or on an error.
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
				w.err = at(&w.index.entry, err)
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

// before moves to the last page of the index page that begins with less than (name, value), or to the first.
func (w *postingWalk) before(name, value []byte) bool {
	return w.moved(w.index.searchLast(func(e *pageEntry) bool { return w.compare(e, name, value) >= 0 }))
}

// advance moves to the next page, which may be in the next index page. It returns false at the end.
func (w *postingWalk) advance() bool {
	switch {
	case w.index.at+1 < w.index.count:
		return w.moved(w.index.next())
	case w.page < len(w.r.footer.index[postingSection]):
		before := w.index.coder
		return w.openIndex(w.page) && w.moved(w.index.head(0)) && w.moved(w.index.follows(&before))
	}
	return false
}

// moved keeps an error of moving in the index page.
func (w *postingWalk) moved(err error) bool {
	if err != nil {
		w.err = at(&w.r.footer.index[postingSection][w.page-1], err)
		w.page = 0
	}
	return err == nil
}

func (w *postingWalk) openIndex(i int) bool {
	if w.page == i+1 {
		return true
	}
	w.page = 0
	e := &w.r.footer.index[postingSection][i]
	var payload []byte
	if payload, w.err = w.r.indexPayload(w.ctx, postingSection, e); w.err != nil {
		return false
	}
	w.page = i + 1
	return w.moved(w.index.open(payload, postingSection, w.r.footerOff))
}

// openPage opens the page on which the walk stands in the index.
func (w *postingWalk) openPage() bool {
	w.fresh = true
	e := &w.index.entry
	if w.payload == nil || w.opened != e.addr {
		var err error
		if w.payload, err = w.r.pages.Page(w.ctx, e.addr); err != nil {
			w.payload, w.err = nil, fmt.Errorf("part: postings: %w", err)
			return false
		}
		w.opened = e.addr
	}
	if err := w.dir.open(w.payload); err != nil {
		w.err = at(e, err)
		return false
	}
	if w.dir.tenant != e.tenant {
		w.err = at(e, corrupt("page of postings is not the one that the index names"))
	}
	return w.err == nil
}

// list adds the ranks of (name, value) to a set.
func (w *postingWalk) list(name, value []byte, into *rankUnion) error {
	for ok := w.seek(name, value); ok && comparePair(w.dir.name, w.dir.value, name, value) == 0; ok = w.next() {
		if err := w.ranks(into); err != nil {
			return err
		}
	}
	return w.err
}

// ranks adds the ranks of the current entry to a set.
func (w *postingWalk) ranks(into *rankUnion) error {
	if err := w.dir.runs(w.series, into.add); err != nil {
		w.err = at(&w.index.entry, err)
	}
	return w.err
}

// values calls fn at each entry of a name whose value begins with prefix. fn may read the entry but not move the walk.
func (w *postingWalk) values(name, prefix []byte, fn func() error) error {
	if err := w.r.ahead(w.ctx, func() ([]Addr, error) { return w.pagesOf(nil, name, prefix, true) }); err != nil {
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
