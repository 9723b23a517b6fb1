package head

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// view is what one query sees of the head: everything that had been applied when it began.
type view struct {
	runs      []*run
	labelRuns []*labelRun
	data      []*localPart
	labels    []*localPart
}

// pin seals the buffers and takes references. The caller calls release.
func (h *Head) pin(s model.Signal) *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sealLocked()
	v := &view{runs: h.runs[s], labelRuns: h.labelRuns[s]}
	for _, p := range h.parts {
		if p.info.Signal != s {
			continue
		}
		p.pin()
		if p.info.Kind == labelPart {
			v.labels = append(v.labels, p)
		} else {
			v.data = append(v.data, p)
		}
	}
	return v
}

func (v *view) release() {
	for _, ps := range [][]*localPart{v.data, v.labels} {
		for _, p := range ps {
			p.unpin()
		}
	}
	v.data, v.labels, v.runs, v.labelRuns = nil, nil, nil, nil
}

// Select returns one cursor over the series of the head that satisfy the request. A series without a row in the
// request's range is left out.
func (h *Head) Select(ctx context.Context, req *model.Request) ([]model.Cursor, error) {
	v := h.pin(req.Signal)
	c := &cursor{view: v, req: req}
	for _, p := range v.labels {
		if p.reader.Meta().Tenant(req.Tenant) == nil {
			continue
		}
		s, err := newPartSeries(ctx, p, req)
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		c.labels.add(s)
	}
	for _, r := range v.labelRuns {
		if entries := r.tenant(req.Tenant); len(entries) > 0 {
			c.labels.add(&runSeries{entries: entries, matchers: req.Matchers})
		}
	}
	for _, p := range v.data {
		t := p.reader.Meta().Tenant(req.Tenant)
		if t == nil || !t.Range.Overlaps(req.Range) {
			continue
		}
		req.Cost.HeadParts.Add(1)
		c.rows = append(c.rows, newPartRows(ctx, p, req))
	}
	for _, r := range v.runs {
		r.sort()
		if t := r.tenant(req.Tenant); t != nil && r.times.Overlaps(req.Range) {
			req.Cost.HeadBuffers.Add(1)
			c.rows = append(c.rows, &runRows{keys: t.keys, columns: &t.columns, rg: req.Range})
		}
	}
	return []model.Cursor{c}, nil
}

// cursor joins the label store with the rows, both in the order of keys.
type cursor struct {
	view   *view
	req    *model.Request
	labels seriesUnion
	rows   []rowSource // oldest first

	err    error
	filled model.Rows // rows of the current series
}

// rowSource gives the rows of keys that come in ascending order.
type rowSource interface {
	// appendRows appends the rows of the key within the request's range, oldest arrival first.
	appendRows(k model.Key, dst *model.Rows) error
}

// Next moves to the next series that has rows in the range.
func (c *cursor) Next(ctx context.Context) bool {
	for c.err == nil {
		if c.err = ctx.Err(); c.err != nil {
			return false
		}
		var more bool
		if more, c.err = c.labels.next(); !more || c.err != nil {
			return false
		}
		c.filled.Reset()
		for _, r := range c.rows {
			if c.err = r.appendRows(c.labels.key, &c.filled); c.err != nil {
				return false
			}
		}
		if c.filled.Len() > 0 {
			c.filled.Normalize()
			return true
		}
	}
	return false
}

func (c *cursor) Key() model.Key       { return c.labels.key }
func (c *cursor) Labels() model.Labels { return c.labels.labels }

// AppendRows hands on what Next has found.
func (c *cursor) AppendRows(_ context.Context, dst *model.Rows) error {
	dst.AppendRows(&c.filled, 0, c.filled.Len())
	return nil
}

// Order puts the head above all blocks: it holds what has not been shipped yet.
func (c *cursor) Order() uint64 { return math.MaxUint64 }

func (c *cursor) Err() error { return c.err }

// Close gives up the references to parts.
func (c *cursor) Close() error {
	c.view.release()
	c.rows = nil
	return nil
}

// LabelNames emits the label names of the tenant's series that satisfy the matchers, whenever they had rows.
func (h *Head) LabelNames(ctx context.Context, req *model.Request, emit func(name []byte) error) error {
	v := h.pin(req.Signal)
	defer v.release()
	for _, p := range v.labels {
		if err := p.reader.LabelNames(ctx, req.Tenant, req.Matchers, emit); err != nil {
			return p.named(err)
		}
	}
	return v.freshLabels(req, func(l model.Labels) error {
		for n, _, rest, ok := l.Next(); ok; n, _, rest, ok = rest.Next() {
			if err := emit(n); err != nil {
				return err
			}
		}
		return nil
	})
}

// LabelValues emits the values of one label.
func (h *Head) LabelValues(ctx context.Context, req *model.Request, name string, emit func(value []byte) error) error {
	v := h.pin(req.Signal)
	defer v.release()
	for _, p := range v.labels {
		if err := p.reader.LabelValues(ctx, req.Tenant, name, req.Matchers, emit); err != nil {
			return p.named(err)
		}
	}
	return v.freshLabels(req, func(l model.Labels) error {
		if value := l.Get(name); value != nil {
			return emit(value)
		}
		return nil
	})
}

// freshLabels visits the label sets that are in no part yet.
func (v *view) freshLabels(req *model.Request, visit func(model.Labels) error) error {
	for _, r := range v.labelRuns {
		for _, e := range r.tenant(req.Tenant) {
			if !matches(e.labels, req.Matchers) {
				continue
			}
			if err := visit(e.labels); err != nil {
				return err
			}
		}
	}
	return nil
}
