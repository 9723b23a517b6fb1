package part

import (
	"context"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/series"
	"github.com/shaledb/shale/internal/store/part/text"
)

// Check reads the whole part and verifies everything that can be verified: every byte belongs to a page,
// every page to the index; keys, labels, times and postings ascend; counts and time ranges in the index and
// the footer are those of the rows, and so are the masks of windows; keys are those of the labels under the
// seed; postings say exactly what the labels say. What is wrong is an error of class corrupt.
func Check(ctx context.Context, r *Reader) error {
	c := newChecker(ctx, r)
	if _, err := c.layout(); err != nil {
		return err
	}
	for _, step := range []func() error{c.footer, c.series} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, f := range families {
		if f.check == nil {
			continue
		}
		if err := f.check(&c.Checking); err != nil {
			return err
		}
	}
	return nil
}

type checker struct{ file.Checking }

func newChecker(ctx context.Context, r *Reader) checker {
	return checker{file.Checking{Ctx: ctx, Reader: r.Reader, Entries: make([][]file.Entry, len(sections))}}
}

// layout verifies that header, pages, footer and tail fill the file. It returns the pages in the order of the
// file.
func (c *checker) layout() ([]file.Addr, error) {
	r := c.Reader
	head, err := r.Read(c.Ctx, 0, file.HeaderBytes)
	if err != nil {
		return nil, err
	}
	if string(head) != file.Header {
		return nil, column.Corrupt("header is %q", head)
	}
	var pages []file.Addr
	seen := map[file.Addr]bool{}
	for _, f := range families {
		s := f.section
		for i := range r.Index(s) {
			sum := &r.Index(s)[i]
			from := len(c.Entries[s.Number])
			if c.Entries[s.Number], err = r.Entries(c.Ctx, c.Entries[s.Number], s, i); err != nil {
				return nil, err
			}
			entries := c.Entries[s.Number][from:]
			if err := file.CheckSum(s, sum, entries); err != nil {
				return nil, file.AtPage(sum.Addr, err)
			}
			pages = append(pages, sum.Addr)
			for k := range entries {
				pages = append(pages, entries[k].Addr)
				if f.pages == nil {
					continue
				}
				extra, err := f.pages(c.Ctx, r.Pages(), seen, &entries[k])
				if err != nil {
					return nil, file.AtPage(entries[k].Addr, err)
				}
				for _, x := range extra {
					pages = append(pages, x.Addr)
				}
			}
		}
		if err := c.Order(s); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(pages, func(a, b file.Addr) int { return int(min(max(a.Off-b.Off, -1), 1)) })
	end := int64(file.HeaderBytes)
	for _, a := range pages {
		if a.Off != end {
			return nil, column.Corrupt("page at %d, should be at %d", a.Off, end)
		}
		end += int64(a.Len)
	}
	if end != r.FooterOff() {
		return nil, column.Corrupt("pages end at %d, footer begins at %d", end, r.FooterOff())
	}
	return pages, nil
}

// footer verifies what the directory of tenants says by itself.
func (c *checker) footer() error {
	m := c.Reader.Meta()
	switch {
	case m.Signal != model.Metrics && m.Signal != model.Logs:
		return column.Corrupt("footer: %s", m.Signal)
	}
	for i := range m.Tenants {
		if m.Tenants[i].Series == 0 {
			return column.Corrupt("footer: tenant %q has no series", m.Tenants[i].Name)
		}
	}
	return nil
}

// series reads every key, label and row.
func (c *checker) series() error {
	m := c.Reader.Meta()
	var tenant *file.Tenant
	var count uint64
	var rows tally
	var last model.Key
	masks := series.NewMaskCursor(c.Ctx, c.Reader)
	kb := model.KeyBuilder{Seed: m.Seed, Signal: m.Signal}
	i := uint32(0)
	for s, err := range All(c.Ctx, newStream(c.Reader)) {
		if err != nil {
			return err
		}
		if tenant == nil || count == uint64(tenant.Series) {
			if err := rows.check(tenant); err != nil {
				return err
			}
			tenant, count, rows = m.Tenant(s.Tenant), 0, newTally()
		} else if !last.Less(s.Key) {
			return column.Corrupt("key %s after %s", s.Key, last)
		}
		last = s.Key
		if err := rows.add(s.Rows); err != nil {
			return fmt.Errorf("key %s: %w", last, err)
		}
		textWindows, err := rows.text.Add(c.Ctx, s.Text, &m.Windows)
		if err != nil {
			return fmt.Errorf("key %s: %w", last, err)
		}
		if m.Windows.Count > 0 {
			mask, err := masks.Mask(i)
			if err != nil {
				return err
			}
			if want := windowsOf(&m.Windows, s.Rows) | textWindows; mask != want {
				return column.Corrupt("key %s has rows in the windows %x, its mask says %x", last, want, mask)
			}
		}
		if m.Labels {
			if err := c.labels(&kb, s.Labels, s.Key, uint32(count)+tenant.Rank0); err != nil {
				return err
			}
		}
		count++
		i++
	}
	return rows.check(tenant)
}

// tally counts the rows of a tenant.
type tally struct {
	samples, exemplars uint64
	times              model.TimeRange
	set                model.Rows
	text               text.Tally
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
		return column.Corrupt("an exemplar stands twice")
	}
	return nil
}

func newTally() tally { return tally{times: file.NoTimes, text: text.Tally{Times: file.NoTimes}} }

func (t *tally) check(tenant *file.Tenant) error {
	if tenant == nil {
		return nil
	}
	x := &t.text
	times := model.TimeRange{Min: min(t.times.Min, x.Times.Min), Max: max(t.times.Max, x.Times.Max)}
	if t.samples != tenant.Samples || t.exemplars != tenant.Exemplars || x.Rows != tenant.Text || x.Bytes != tenant.TextBytes || times != tenant.Range {
		return column.Corrupt("tenant %q: %d samples, %d exemplars and %d lines of %d bytes in %v, the footer says %d, %d and %d of %d in %v",
			tenant.Name, t.samples, t.exemplars, x.Rows, x.Bytes, times, tenant.Samples, tenant.Exemplars, tenant.Text, tenant.TextBytes, tenant.Range)
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
		c.Pairs += series.PairSum(name, value, rank)
	}
	if got := kb.Key(l); got != k {
		return column.Corrupt("rank %d has key %s, its labels %s make %s", rank, k, l, got)
	}
	return nil
}

// windowsOf returns the windows of all rows of a series.
func windowsOf(w *file.Windows, rows *model.SeriesRows) uint64 {
	mask := uint64(0)
	for _, f := range model.PointFamilies() {
		mask |= w.MaskOf(rows.Family(f).Times)
	}
	return mask
}
