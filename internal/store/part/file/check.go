package file

import (
	"bytes"
	"context"
	"sort"

	"github.com/shaledb/shale/internal/store/part/column"
)

// Checking is the check of one file: what the checks of its sections need.
type Checking struct {
	Ctx    context.Context
	Reader *Reader
	// Entries are those of all index pages, by the numbers of the sections.
	Entries [][]Entry
	// Pairs is a sum of hashes of all (rank, label) of the label sets. The sum over the postings must be the
	// same.
	Pairs uint64
}

// ExtraPage is a page that an entry leads to and that is not in the index by itself.
type ExtraPage struct {
	Addr Addr
	Name string
	Dump func(a *Annotator)
}

// ExtraPages lists the pages of an entry that are not in the index and not in seen. After an error it returns
// those that it has found.
type ExtraPages func(ctx context.Context, pages Pages, seen map[Addr]bool, e *Entry) ([]ExtraPage, error)

// CheckSum verifies that the footer sums up an index page rightly.
func CheckSum(s *Section, sum *Entry, entries []Entry) error {
	x := IndexWriter{Section: s}
	for i := range entries {
		x.Add(entries[i])
	}
	got := &x.sum
	if got.Rank0 != sum.Rank0 || got.Ranks != sum.Ranks || got.Key != sum.Key || got.Rows != sum.Rows || got.Times != sum.Times || got.Text != sum.Text ||
		got.Tenant != sum.Tenant || !bytes.Equal(got.Name, sum.Name) || !bytes.Equal(got.Value, sum.Value) {
		return column.Corrupt("index page of %s is not what the footer says", s)
	}
	return nil
}

// Order verifies that the pages of a section cover the ranks that they should.
func (c *Checking) Order(s *Section) error {
	entries, m := c.Entries[s.Number], c.Reader.Meta()
	next := uint32(0)
	for i := range entries {
		e := &entries[i]
		switch {
		case s.Form == PairEntries:
			if int(e.Tenant) >= len(m.Tenants) || i > 0 && e.Tenant < entries[i-1].Tenant {
				return AtPage(e.Addr, column.Corrupt("page of postings of tenant %d is out of order", e.Tenant))
			}
			continue
		case s.rows() && i > 0 && e.Rank0 == next-1 && next > 0:
			// The last series of the page before goes on.
		case s.rows() && e.Rank0 >= next:
		case e.Rank0 != next:
			return AtPage(e.Addr, column.Corrupt("page of %s begins at rank %d, should at %d", s, e.Rank0, next))
		}
		next = e.Last() + 1
		if t := tenantAt(m, e.Rank0); t == nil || e.Last()-t.Rank0 >= t.Series {
			return AtPage(e.Addr, column.Corrupt("page of %s spans tenants", s))
		}
	}
	if s.Needed == nil {
		return nil
	}
	switch needed := s.Needed(m); {
	case !needed && len(entries) > 0:
		return column.Corrupt("pages of %s in a part that has no %s", s, s)
	case needed && s.Form != PairEntries && uint64(next) != m.Series:
		return column.Corrupt("pages of %s end at rank %d of %d", s, next, m.Series)
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
