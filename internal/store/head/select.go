package head

import (
	"context"
	"math"
	"sync"

	"github.com/shaledb/shale/internal/model"
)

// view is what one query sees of the head: everything that had been applied when it began.
type view struct {
	runs      []*run
	labelRuns []*labelRun
	data      []*localPart
	labels    []*localPart
	cache     PageCache // of pages of parts; may be nil
	seed      model.KeySeed
}

// pin seals the buffers and takes references. The caller calls release.
func (h *Head) pin(s model.Signal) *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sealRowsLocked()
	v := h.pinLabelsLocked(s)
	v.runs = h.runs[s]
	for _, p := range h.parts {
		if p.info.Signal == s && p.info.Kind == dataPart {
			p.pin()
			v.data = append(v.data, p)
		}
	}
	return v
}

// pinLabels is pin for those who look at labels alone.
func (h *Head) pinLabels(s model.Signal) *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pinLabelsLocked(s)
}

func (h *Head) pinLabelsLocked(s model.Signal) *view {
	h.sealLabelsLocked()
	v := &view{labelRuns: h.labelRuns[s], seed: h.o.Seed}
	for _, p := range h.parts {
		if p.info.Signal == s && p.info.Kind == labelPart {
			p.pin()
			v.labels = append(v.labels, p)
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

// Select returns one cursor over the series of the head that satisfy the request, with the rows of its family. A series
// without such a row in the request's range is left out. Series of logs come without rows: see [Head.SelectText].
func (h *Head) Select(ctx context.Context, req *model.Request) ([]model.Cursor, error) {
	return h.Cached(nil).Select(ctx, req)
}

// SelectText returns one cursor over the series of the head with lines that satisfy the request.
func (h *Head) SelectText(ctx context.Context, req *model.Request) ([]model.TextCursor, error) {
	return h.Cached(nil).SelectText(ctx, req)
}

// LabelNames emits the label names of the tenant's series that satisfy the matchers, whenever they had rows.
func (h *Head) LabelNames(ctx context.Context, req *model.Request, emit func(name []byte) error) error {
	return h.Cached(nil).LabelNames(ctx, req, emit)
}

// LabelValues emits the values of one label.
func (h *Head) LabelValues(ctx context.Context, req *model.Request, name string, emit func(value []byte) error) error {
	return h.Cached(nil).LabelValues(ctx, req, name, emit)
}

// Source is the head with a cache for the pages of its parts: without one, every query reads and decompresses them anew.
type Source struct {
	head  *Head
	pages PageCache
}

// Cached returns the head as queries see it through a cache of pages; nil: none.
func (h *Head) Cached(pages PageCache) *Source { return &Source{h, pages} }

// Select is Head.Select.
func (s *Source) Select(ctx context.Context, req *model.Request) ([]model.Cursor, error) {
	if req.Signal == model.Logs {
		c, err := s.openText(ctx, req)
		if err != nil {
			return nil, err
		}
		return []model.Cursor{textSeries{c}}, nil
	}
	c := &cursor{view: s.head.pin(req.Signal), req: req, family: max(req.Family, model.Samples), filled: filledRows.Get().(*model.Rows)}
	c.view.cache = s.pages
	if err := c.open(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return []model.Cursor{c}, nil
}

// cursor joins the label store with the rows, both in the order of keys.
type cursor struct {
	view   *view
	req    *model.Request
	family model.Family
	labels seriesUnion
	rows   []rowSource // oldest first

	err    error
	filled *model.Rows // rows of the current series; a cursor of lines has none
	// What the request's quota has been charged with: lists of series, and the memory of filled.
	listBytes, filledBytes int64
}

// filledRows keeps the memory of rows between queries. What has room for more than keptRows rows, or bytes of histograms, is left to
// the collector.
var filledRows = sync.Pool{New: func() any { return new(model.Rows) }}

const keptRows = 1 << 16

// open finds what there is of the request. Without rows there are no series.
func (c *cursor) open(ctx context.Context) error {
	req := c.req
	for _, p := range c.view.data {
		t := p.reader.Meta().Tenant(req.Tenant)
		if t == nil || !t.Range.Overlaps(req.Range) || c.family == model.Exemplars && t.Exemplars == 0 {
			continue
		}
		req.Cost.HeadParts.Add(1)
		c.rows = append(c.rows, newPartRows(ctx, p.countedFor(req, c.view.cache), p, req, c.family))
	}
	for _, r := range c.view.runs {
		r.sort()
		t := r.tenant(req.Tenant)
		if t == nil || len(t.rows[c.family].keys) == 0 || !t.rows[c.family].rg.Overlaps(req.Range) {
			continue
		}
		req.Cost.HeadBuffers.Add(1)
		c.rows = append(c.rows, &bufferedRows{rows: &t.rows[c.family], blobs: r.blobs, rg: req.Range})
	}
	if len(c.rows) == 0 {
		return nil
	}
	return c.openLabels(ctx)
}

// openLabels finds the series of the request, whether they have rows or not.
func (c *cursor) openLabels(ctx context.Context) error {
	req := c.req
	for _, p := range c.view.labels {
		if p.reader.Meta().Tenant(req.Tenant) == nil {
			continue
		}
		s, bytes, err := newPartSeries(ctx, p.countedFor(req, c.view.cache), p, req)
		if err == nil {
			err = c.charge(&c.listBytes, bytes)
		}
		if err != nil {
			return err
		}
		c.labels.add(s)
	}
	for _, r := range c.view.labelRuns {
		if entries := near(r.tenant(req.Tenant), c.view.seed, req.Signal, req.Matchers); len(entries) > 0 {
			c.labels.add(&runSeries{entries: entries, matchers: req.Matchers})
		}
	}
	return nil
}

// charge charges the request's quota with bytes, which Close gives back.
func (c *cursor) charge(account *int64, bytes int64) error {
	if err := c.req.Quota.TakeBytes(bytes); err != nil {
		return err
	}
	*account += bytes
	return nil
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
		if c.err = c.fill(); c.err == nil && c.filled.Len() > 0 {
			return true
		}
	}
	return false
}

// fill gathers the rows of the current series.
func (c *cursor) fill() error {
	c.filled.Reset()
	for _, r := range c.rows {
		if err := r.appendRows(c.labels.key, c.filled); err != nil {
			return err
		}
	}
	f := c.filled
	f.NormalizeAs(c.family)
	// Not its capacity, which may be that of an earlier query.
	bytes := int64(16*len(f.Times) + 8*len(f.Starts) + len(f.Kinds) + len(f.Bytes))
	if bytes <= c.filledBytes {
		return nil
	}
	return c.charge(&c.filledBytes, bytes-c.filledBytes)
}

func (c *cursor) Key() model.Key       { return c.labels.key }
func (c *cursor) Labels() model.Labels { return c.labels.labels }

// AppendRows hands on what Next has found.
func (c *cursor) AppendRows(_ context.Context, dst *model.Rows) error {
	dst.AppendRows(c.filled, 0, c.filled.Len())
	return nil
}

// Order puts the head above all blocks: it holds what has not been shipped yet.
func (c *cursor) Order() uint64 { return math.MaxUint64 }

func (c *cursor) Err() error { return c.err }

// Close gives up the references to parts, and what the quota was charged with.
func (c *cursor) Close() error {
	c.view.release()
	if f := c.filled; f != nil && cap(f.Times) <= keptRows && cap(f.Bytes) <= keptRows {
		filledRows.Put(f)
	}
	for _, r := range c.rows {
		if p, ok := r.(*partRows); ok {
			p.rows.Close()
		}
	}
	c.rows, c.labels, c.filled = nil, seriesUnion{}, new(model.Rows)
	_ = c.req.Quota.TakeBytes(-c.listBytes - c.filledBytes) // giving back never fails
	c.listBytes, c.filledBytes = 0, 0
	return nil
}

// LabelNames is Head.LabelNames.
func (s *Source) LabelNames(ctx context.Context, req *model.Request, emit func(name []byte) error) error {
	v := s.head.pinLabels(req.Signal)
	defer v.release()
	for _, p := range v.labels {
		if err := p.chargedFor(req, s.pages).LabelNames(ctx, req.Tenant, req.Matchers, emit); err != nil {
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

// LabelValues is Head.LabelValues.
func (s *Source) LabelValues(ctx context.Context, req *model.Request, name string, emit func(value []byte) error) error {
	v := s.head.pinLabels(req.Signal)
	defer v.release()
	for _, p := range v.labels {
		if err := p.chargedFor(req, s.pages).LabelValues(ctx, req.Tenant, name, req.Matchers, emit); err != nil {
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
		for _, e := range near(r.tenant(req.Tenant), v.seed, req.Signal, req.Matchers) {
			if !satisfies(e.labels(), req.Matchers) {
				continue
			}
			if err := visit(e.labels()); err != nil {
				return err
			}
		}
	}
	return nil
}
