package part

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
)

// Check reads the whole part and verifies everything that can be verified: every byte belongs to a page, every page to
// the index; keys, labels, times and postings ascend; counts and time ranges in the index and the footer are those of the
// rows, and so are the masks of windows; keys are those of the labels under the seed; postings say exactly what the labels say. What is wrong is an error
// of class corrupt.
func Check(ctx context.Context, r *Reader) error {
	c := checker{ctx: ctx, r: r}
	for _, step := range []func() error{c.layout, c.footer, c.series, c.text, c.postings} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

type checker struct {
	ctx     context.Context
	r       *Reader
	entries [sections][]pageEntry
	// pairs is a sum of hashes of all (rank, label), of the labels and minus that of the postings.
	pairs uint64
}

// layout verifies that header, pages, footer and tail fill the file.
func (c *checker) layout() error {
	r := c.r
	head, err := r.read(c.ctx, 0, headerBytes)
	if err != nil {
		return err
	}
	if string(head) != header {
		return corrupt("header is %q", head)
	}
	var pages []Addr
	filters := map[Addr]bool{}
	for s := range sections {
		for i := range r.footer.index[s] {
			sum := &r.footer.index[s][i]
			from := len(c.entries[s])
			if c.entries[s], err = r.indexPage(c.ctx, c.entries[s], s, i); err != nil {
				return err
			}
			if err := checkSum(s, sum, c.entries[s][from:]); err != nil {
				return at(sum, err)
			}
			pages = append(pages, sum.addr)
			for k := range c.entries[s][from:] {
				e := &c.entries[s][from+k]
				if pages = append(pages, e.addr); e.text.lines > 0 {
					pages = append(pages, e.linesAddr())
				}
				if f := e.text.filter; f.Len > 0 && !filters[f] {
					filters[f] = true
					if pages, err = appendFilterAddrs(c.ctx, pages, r.pages, f); err != nil {
						return at(e, err)
					}
				}
			}
		}
		if err := c.order(s); err != nil {
			return err
		}
	}
	slices.SortFunc(pages, func(a, b Addr) int { return int(min(max(a.Off-b.Off, -1), 1)) })
	end := int64(headerBytes)
	for _, a := range pages {
		if a.Off != end {
			return corrupt("page at %d, should be at %d", a.Off, end)
		}
		end += int64(a.Len)
	}
	if end != r.footerOff {
		return corrupt("pages end at %d, footer begins at %d", end, r.footerOff)
	}
	return nil
}

// checkSum verifies that the footer sums up an index page rightly.
func checkSum(s section, sum *pageEntry, entries []pageEntry) error {
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
func (c *checker) order(s section) error {
	entries, m := c.entries[s], c.r.Meta()
	next := uint32(0)
	for i := range entries {
		e := &entries[i]
		switch {
		case s == postingSection:
			if int(e.tenant) >= len(m.Tenants) || i > 0 && e.tenant < entries[i-1].tenant {
				return at(e, corrupt("page of postings of tenant %d is out of order", e.tenant))
			}
			continue
		case s.rows() && i > 0 && e.rank0 == next-1 && next > 0:
			// The last series of the page before goes on.
		case s.rows() && e.rank0 >= next:
		case e.rank0 != next:
			return at(e, corrupt("page of %s begins at rank %d, should at %d", s, e.rank0, next))
		}
		next = e.last() + 1
		if t := tenantAt(m, e.rank0); t == nil || e.last()-t.Rank0 >= t.Series {
			return at(e, corrupt("page of %s spans tenants", s))
		}
	}
	switch {
	case uint64(next) != m.Series && (s == keySection || s == labelSection && m.Labels || s == windowSection && m.Windows.Count > 0):
		return corrupt("pages of %s end at rank %d of %d", s, next, m.Series)
	case !m.Labels && len(entries) > 0 && (s == labelSection || s == postingSection):
		return corrupt("pages of %s in a part without labels", s)
	case s == windowSection && m.Windows.Count == 0 && len(entries) > 0:
		return corrupt("pages of windows in a part without windows")
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

// footer verifies what the directory of tenants says by itself.
func (c *checker) footer() error {
	m := c.r.Meta()
	switch {
	case m.Signal != model.Metrics && m.Signal != model.Logs:
		return corrupt("footer: %s", m.Signal)
	}
	for i := range m.Tenants {
		if m.Tenants[i].Series == 0 {
			return corrupt("footer: tenant %q has no series", m.Tenants[i].Name)
		}
	}
	return nil
}

// series reads every key, label and row.
func (c *checker) series() error {
	m := c.r.Meta()
	var tenant *Tenant
	var count uint64
	var rows tally
	var last model.Key
	masks := maskCursor{pages: rankWalk{ctx: c.ctx, r: c.r, section: windowSection}}
	kb := model.KeyBuilder{Seed: m.Seed, Signal: m.Signal}
	s := c.r.Stream()
	for i := 0; s.Next(c.ctx); i++ {
		if tenant == nil || count == uint64(tenant.Series) {
			if err := rows.check(tenant); err != nil {
				return err
			}
			tenant, count, rows = m.Tenant(s.Tenant()), 0, tally{times: noTimes}
		} else if !last.Less(s.Key()) {
			return corrupt("key %s after %s", s.Key(), last)
		}
		last = s.Key()
		if err := rows.add(s.Rows()); err != nil {
			return fmt.Errorf("key %s: %w", last, err)
		}
		textWindows, err := rows.addText(c.ctx, s.Text(), m.Windows)
		if err != nil {
			return fmt.Errorf("key %s: %w", last, err)
		}
		if m.Windows.Count > 0 {
			mask, err := masks.at(uint32(i))
			if err != nil {
				return err
			}
			if want := m.Windows.ofSeries(s.Rows()) | textWindows; mask != want {
				return corrupt("key %s has rows in the windows %x, its mask says %x", last, want, mask)
			}
		}
		if m.Labels {
			if err := c.labels(&kb, s.Labels(), s.Key(), uint32(count)+tenant.Rank0); err != nil {
				return err
			}
		}
		count++
	}
	if s.Err() != nil {
		return s.Err()
	}
	if err := rows.check(tenant); err != nil {
		return err
	}
	for _, s := range []section{sampleSection, exemplarSection} {
		if err := c.pageTimes(s); err != nil {
			return err
		}
	}
	return nil
}

// tally counts the rows of a tenant.
type tally struct {
	samples, exemplars uint64
	text, textBytes    uint64
	times              model.TimeRange
	set                model.Rows
	seen               tieSet
}

func (t *tally) add(rows *model.SeriesRows) error {
	t.samples += uint64(rows.Samples.Len())
	t.exemplars += uint64(rows.Exemplars.Len())
	for _, f := range model.PointFamilies() {
		if times := rows.Family(f).Times; len(times) > 0 {
			t.times.Min, t.times.Max = min(t.times.Min, times[0]), max(t.times.Max, times[len(times)-1])
		}
	}
	t.set.Reset()
	t.set.AppendRows(&rows.Exemplars, 0, rows.Exemplars.Len())
	if t.set.NormalizeSet(); t.set.Len() != rows.Exemplars.Len() {
		return corrupt("an exemplar stands twice")
	}
	return nil
}

func (t *tally) check(tenant *Tenant) error {
	if tenant != nil && (t.samples != tenant.Samples || t.exemplars != tenant.Exemplars || t.text != tenant.Text || t.textBytes != tenant.TextBytes || t.times != tenant.Range) {
		return corrupt("tenant %q: %d samples, %d exemplars and %d lines of %d bytes in %v, the footer says %d, %d and %d of %d in %v",
			tenant.Name, t.samples, t.exemplars, t.text, t.textBytes, t.times, tenant.Samples, tenant.Exemplars, tenant.Text, tenant.TextBytes, tenant.Range)
	}
	return nil
}

// pageTimes verifies the rows and times that the index gives for pages of rows, since readers skip pages by them.
func (c *checker) pageTimes(s section) error {
	var dir rowDir = &sampleDir{}
	if s == exemplarSection {
		dir = &exemplarDir{}
	}
	for i := range c.entries[s] {
		e := &c.entries[s][i]
		payload, err := c.r.pages.Page(c.ctx, e.addr)
		if err != nil {
			return err
		}
		if err := dir.open(payload); err != nil {
			return at(e, err)
		}
		times, rows, err := dir.extent()
		if err != nil {
			return at(e, err)
		}
		if times != e.times || rows != e.rows {
			return at(e, corrupt("%d rows in %v, the index says %d in %v", rows, times, e.rows, e.times))
		}
	}
	return nil
}

func (c *checker) labels(kb *model.KeyBuilder, l model.Labels, k model.Key, rank uint32) error {
	if err := l.Check(); err != nil {
		return err
	}
	kb.Reset()
	for name, value, rest, ok := l.Next(); ok; name, value, rest, ok = rest.Next() {
		kb.Label(name, value)
		c.pairs += pairSum(name, value, rank)
	}
	if got := kb.Key(l); got != k {
		return corrupt("rank %d has key %s, its labels %s make %s", rank, k, l, got)
	}
	return nil
}

// pairSum spreads a (rank, label) over 64 bits.
func pairSum(name, value []byte, rank uint32) uint64 {
	return rankSum(pairHash(name, value), rank)
}

func pairHash(name, value []byte) uint64 { return xxh3.HashSeed(name, xxh3.Hash(value)) }

func rankSum(h uint64, rank uint32) uint64 {
	h ^= uint64(rank) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

// postings takes the sum over the postings from that over the labels, and verifies their order. That pages hold the
// entries that the index names was verified on opening each.
func (c *checker) postings() error {
	m := c.r.Meta()
	if !m.Labels {
		return nil
	}
	pages := 0
	w := &postingWalk{ctx: c.ctx, r: c.r}
	for i := range m.Tenants {
		t := &m.Tenants[i]
		var lastName, lastValue []byte
		var lastEnd uint32
		w.tenant, w.series = uint32(i), t.Series
		for ok := w.seek(nil, nil); ok; ok = w.next() {
			if e := &w.index.entry; w.first {
				pages++
				if !bytes.Equal(e.name, w.dir.name) || !bytes.Equal(e.value, w.dir.value) {
					return at(e, corrupt("page of postings does not begin as the index says"))
				}
			}
			order := comparePair(lastName, lastValue, w.dir.name, w.dir.value)
			if lastName != nil && (order > 0 || order == 0 && w.dir.first < lastEnd) {
				return corrupt("postings of %q=%q after %q=%q", w.dir.name, w.dir.value, lastName, lastValue)
			}
			lastName, lastValue = append(lastName[:0], w.dir.name...), append(lastValue[:0], w.dir.value...)
			h := pairHash(w.dir.name, w.dir.value)
			err := w.dir.runs(t.Series, func(from, to uint32) {
				lastEnd = to
				for k := from; k < to; k++ {
					c.pairs -= rankSum(h, k+t.Rank0)
				}
			})
			if err != nil {
				return at(&w.index.entry, err)
			}
		}
		if w.err != nil {
			return w.err
		}
	}
	if pages != len(c.entries[postingSection]) {
		return corrupt("%d pages of postings were reached, the index has %d", pages, len(c.entries[postingSection]))
	}
	if c.pairs != 0 {
		return corrupt("postings and labels disagree")
	}
	return nil
}
