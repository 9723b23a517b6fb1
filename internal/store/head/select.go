package head

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// view is what one query sees of the head: everything that had been applied when it began.
type view struct {
	runs      []*run
	labelRuns []*labelRun
	data      []*localPart
	labels    []*localPart
	cache     part.Cache // of pages of parts; may be nil
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
	pages part.Cache
}

// Cached returns the head as queries see it through a cache of pages; nil: none.
func (h *Head) Cached(pages part.Cache) *Source { return &Source{h, pages} }

// Select is Head.Select.
func (s *Source) Select(ctx context.Context, req *model.Request) ([]model.Cursor, error) {
	if req.Signal == model.Logs {
		c, err := s.openText(ctx, req)
		if err != nil {
			return nil, err
		}
		return []model.Cursor{textSeries{c}}, nil
	}
	c := &cursor{selection: s.pin(req), family: max(req.Family, model.Samples)}
	if err := c.open(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return []model.Cursor{c}, nil
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
