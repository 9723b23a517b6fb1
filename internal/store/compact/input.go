package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
	"github.com/shaledb/shale/internal/store/retention"
)

// inputError is an error of one input.
type inputError struct {
	id  string
	err error
}

func (e *inputError) Error() string { return fmt.Sprintf("block %s: %v", e.id, e.err) }

func (e *inputError) Unwrap() error { return e.err }

// chains arranges blocks so that each chain is one sequence of ascending series. The blocks of one earlier
// merge, which were cut by series, form one chain and are open one at a time. Blocks in order give chains in
// order.
func chains(inputs []catalog.Block) [][]catalog.Block {
	var all [][]catalog.Block
	for _, b := range bySeries(inputs) {
		at := slices.IndexFunc(all, func(c []catalog.Block) bool {
			last := &c[len(c)-1]
			return last.SameMerge(&b) && last.Precedes(&b)
		})
		if at < 0 {
			all = append(all, []catalog.Block{b})
		} else {
			all[at] = append(all[at], b)
		}
	}
	slices.SortStableFunc(all, func(a, b []catalog.Block) int {
		return cmp.Or(cmp.Compare(a[0].OrderHi, b[0].OrderHi), cmp.Compare(a[0].OrderLo, b[0].OrderLo))
	})
	return all
}

// bySeries sorts blocks by their first series, as far as the catalogue knows it.
func bySeries(blocks []catalog.Block) []catalog.Block {
	sorted := slices.Clone(blocks)
	slices.SortFunc(sorted, func(a, b catalog.Block) int {
		return cmp.Or(strings.Compare(a.FirstTenant, b.FirstTenant), a.FirstKey.Compare(b.FirstKey),
			cmp.Compare(a.OrderHi, b.OrderHi), strings.Compare(a.ID, b.ID))
	})
	return sorted
}

// chain streams the series of its blocks, without deleted and expired rows.
type chain struct {
	m      *merge
	blocks []catalog.Block // the first is open
	most   int64           // bytes of a window

	stream    part.Stream
	series    part.Series // the current one
	tenant    string
	deletions catalog.Deletions // of the open block and the tenant
	policy    retention.Policy  // of the tenant
	expires   bool              // rows of the open block and the tenant may have expired
	err       error
}

// Next is that of [part.Stream].
func (c *chain) Next(ctx context.Context) (*part.Series, error) {
	s, err := c.next(ctx)
	c.m.reading = ""
	return s, err
}

func (c *chain) next(ctx context.Context) (*part.Series, error) {
	for c.err == nil {
		if c.stream == nil && !c.openNext(ctx) {
			break
		}
		c.m.reading = c.blocks[0].ID
		s, err := c.stream.Next(ctx)
		if s == nil && err == nil {
			c.stream, c.blocks = nil, c.blocks[1:]
			continue
		}
		if err == nil {
			err = checkTimes(c.blocks[0].Range, s.Rows, s.Text)
		}
		if err != nil {
			c.err = &inputError{c.blocks[0].ID, err}
			break
		}
		c.series = *s
		if s.Tenant != c.tenant {
			c.enter(s.Tenant)
		}
		if len(c.deletions) == 0 && !c.expires || c.cut() {
			return &c.series, nil
		}
	}
	return nil, c.err
}

// enter finds what hides rows of a tenant in the open block.
func (c *chain) enter(tenant string) {
	b := &c.blocks[0]
	c.tenant, c.deletions, c.policy = tenant, c.m.deletions.Applying(b, tenant), c.m.rules.Policy(tenant, b.Signal)
	// With rollups, a block of metrics expires as a whole: see rollup.go.
	c.expires = b.Range.Min < retention.Before(c.m.expired, c.policy.Least) && (b.Signal != model.Metrics || !c.m.keepsRows)
}

// openNext opens the next block. It returns false at the end.
func (c *chain) openNext(ctx context.Context) bool {
	if len(c.blocks) == 0 {
		return false
	}
	r, err := c.m.reader(ctx, &c.blocks[0], c.most)
	if err != nil {
		c.err = err
		return false
	}
	c.stream, c.tenant, c.deletions = r.Stream(), "", nil
	return true
}

// cut removes deleted and expired rows from the current series, and reports whether any row is left.
func (c *chain) cut() bool {
	cuts := c.deletions.Cuts(c.series.Labels)
	if c.expires {
		cuts = cuts.Before(retention.Before(c.m.expired, c.policy.Keep(c.series.Labels)))
	}
	if len(cuts) == 0 {
		return true
	}
	rows, text := c.series.Rows, c.series.Text
	for _, f := range model.PointFamilies() {
		cuts.Rows(rows.Family(f), 0)
	}
	if text == nil {
		return rows.Len() > 0
	}
	if cuts.Filtered(model.Always()) {
		text = &filteredText{Text: text, cuts: cuts}
	}
	kept := &keptText{Text: text, ranges: outside(cuts.Ranges())}
	hasLines, err := kept.hasRows(c.m.ctx)
	if c.series.Text = nil; hasLines {
		c.series.Text = kept
	}
	if c.err = err; err != nil {
		c.err = &inputError{c.blocks[0].ID, err}
		return false
	}
	return hasLines || rows.Len() > 0
}

// reader opens a block and compares it with its entry in the catalogue.
func (m *merge) reader(ctx context.Context, b *catalog.Block, most int64) (*part.Reader, error) {
	m.reading = b.ID
	ws := &windows{m: m, block: b.ID, object: catalog.ObjectName(b.ID), size: b.Bytes, most: most}
	r, err := part.OpenWith(ctx, ws, ws.read, b.Bytes)
	if err == nil {
		meta := r.Meta()
		switch {
		case meta.Seed != m.c.o.Seed:
			err = fmt.Errorf("%w: key seed %016x does not match the bucket's %016x", model.ErrCorrupt, uint64(meta.Seed), uint64(m.c.o.Seed))
		case meta.Signal != b.Signal || meta.Series != b.Series || meta.Samples != b.Samples || !sameLines(meta, b) || meta.Range != b.Range || !meta.Labels:
			err = fmt.Errorf("%w: the block does not match its commit record", model.ErrCorrupt)
		}
	}
	m.reading = ""
	if err != nil {
		return nil, &inputError{b.ID, err}
	}
	return r, nil
}

// sameLines reports whether a block has as many lines as its record says, if the record says so.
func sameLines(m *part.Meta, b *catalog.Block) bool {
	return b.Lines == 0 && b.LineBytes == 0 || m.Text == b.Lines && m.TextBytes == b.LineBytes
}

// fetch reads bytes of an object within the budget, and retries transient errors of the bucket.
func (m *merge) fetch(ctx context.Context, object string, off, n int64) (b []byte, err error) {
	if err := m.c.pace.wait(ctx, n); err != nil {
		return nil, err
	}
	err = retry(ctx, m.c.o.firstPause, func() error {
		b, err = m.c.o.Bucket.GetRange(ctx, object, off, n)
		if err == nil && int64(len(b)) != n {
			err = fmt.Errorf("%w: %s: got %d bytes of [%d, %d)", model.ErrTransient, object, len(b), off, off+n)
		}
		return err
	})
	if errors.Is(err, bucket.ErrNotFound) || errors.Is(err, model.ErrInvalid) {
		return nil, fmt.Errorf("%w: the object is missing, truncated or unreadable: %v", model.ErrCorrupt, err)
	}
	if err != nil {
		return nil, err
	}
	m.c.metrics.read.Add(float64(n))
	return b, nil
}

// blamed returns the block that a permanent error is about.
func blamed(err error) (id string, ok bool) {
	var e *inputError
	if !errors.As(err, &e) || errors.Is(err, model.ErrTransient) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "", false
	}
	return e.id, true
}
