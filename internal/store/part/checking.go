package part

import (
	"bytes"
	"context"
	"sort"
)

// checking is the check of one file: what the checks of its sections need.
type checking struct {
	ctx context.Context
	r   *fileReader
	// entries are those of all index pages, by the numbers of the sections.
	entries [][]pageEntry
	// pairs is a sum of hashes of all (rank, label) of the label sets. The sum over the postings must be the same.
	pairs uint64
}

// extraPage is a page that an entry leads to and that is not in the index by itself.
type extraPage struct {
	addr Addr
	name string
	dump func(a *annotator)
}

// pageLister lists the pages of an entry that are not in the index and not in seen. After an error it returns those that it
// has found.
type pageLister func(ctx context.Context, pages Pages, seen map[Addr]bool, e *pageEntry) ([]extraPage, error)

// checkSum verifies that the footer sums up an index page rightly.
func checkSum(s *section, sum *pageEntry, entries []pageEntry) error {
	x := indexWriter{section: s}
	for i := range entries {
		x.add(entries[i])
	}
	got := &x.sum
	if got.rank0 != sum.rank0 || got.ranks != sum.ranks || got.key != sum.key || got.rows != sum.rows || got.times != sum.times || got.text != sum.text ||
		got.tenant != sum.tenant || !bytes.Equal(got.name, sum.name) || !bytes.Equal(got.value, sum.value) {
		return corrupt("index page of %s is not what the footer says", s)
	}
	return nil
}

// order verifies that the pages of a section cover the ranks that they should.
func (c *checking) order(s *section) error {
	entries, m := c.entries[s.number], c.r.Meta()
	next := uint32(0)
	for i := range entries {
		e := &entries[i]
		switch {
		case s.form == pairEntries:
			if int(e.tenant) >= len(m.Tenants) || i > 0 && e.tenant < entries[i-1].tenant {
				return atPage(e.addr, corrupt("page of postings of tenant %d is out of order", e.tenant))
			}
			continue
		case s.rows() && i > 0 && e.rank0 == next-1 && next > 0:
			// The last series of the page before goes on.
		case s.rows() && e.rank0 >= next:
		case e.rank0 != next:
			return atPage(e.addr, corrupt("page of %s begins at rank %d, should at %d", s, e.rank0, next))
		}
		next = e.last() + 1
		if t := tenantAt(m, e.rank0); t == nil || e.last()-t.Rank0 >= t.Series {
			return atPage(e.addr, corrupt("page of %s spans tenants", s))
		}
	}
	if s.needed == nil {
		return nil
	}
	switch needed := s.needed(m); {
	case !needed && len(entries) > 0:
		return corrupt("pages of %s in a part that has no %s", s, s)
	case needed && s.form != pairEntries && uint64(next) != m.Series:
		return corrupt("pages of %s end at rank %d of %d", s, next, m.Series)
	}
	return nil
}

func tenantAt(m *Meta, rank uint32) *Tenant {
	// The last tenant that begins at or before the rank.
	i := sort.Search(len(m.Tenants), func(i int) bool { return m.Tenants[i].Rank0 > rank }) - 1
	if i < 0 || rank-m.Tenants[i].Rank0 >= m.Tenants[i].Series {
		return nil
	}
	return &m.Tenants[i]
}
