package head

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// view is what one query sees of the head: everything that had been applied when it began.
type view struct {
	runs       []*run
	labelRuns  []*labelRun
	dataParts  []*localPart // these and labelParts have a reference each
	labelParts []*localPart
	seed       model.KeySeed
}

// release gives up the references.
func (v *view) release() {
	for _, ps := range [][]*localPart{v.dataParts, v.labelParts} {
		for _, p := range ps {
			p.unpin()
		}
	}
	v.dataParts, v.labelParts, v.runs, v.labelRuns = nil, nil, nil, nil
}

// Pinner gives queries their views. A view must be released.
type Pinner interface {
	// Pin returns everything of a signal.
	Pin(s model.Signal) *view
	// PinLabels returns the label parts and label runs of a signal.
	PinLabels(s model.Signal) *view
}

// Source answers queries from the head's parts and buffers.
type Source struct {
	head  Pinner
	pages part.Cache // of pages of parts; may be nil
}

// newSource returns a source that keeps pages of parts in a cache. Without one (nil), every query reads and decompresses
// them again.
func newSource(head Pinner, pages part.Cache) *Source { return &Source{head, pages} }

// Select returns one cursor over the series that satisfy the request, with the rows of its family. A series without such
// a row in the request's range is left out. Series of logs come without rows: see [Source.SelectText].
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

// LabelNames emits the label names of the tenant's series that satisfy the matchers, whenever they had rows.
func (s *Source) LabelNames(ctx context.Context, req *model.Request, emit func(name []byte) error) error {
	v := s.head.PinLabels(req.Signal)
	defer v.release()
	for _, p := range v.labelParts {
		if err := p.chargedFor(req, s.pages).LabelNames(ctx, req.Tenant, req.Matchers, emit); err != nil {
			return p.named(err)
		}
	}
	return v.bufferedLabels(req, func(l model.Labels) error {
		for n, _, rest, ok := l.Next(); ok; n, _, rest, ok = rest.Next() {
			if err := emit(n); err != nil {
				return err
			}
		}
		return nil
	})
}

// LabelValues emits the values of one label.
func (s *Source) LabelValues(ctx context.Context, req *model.Request, name string, emit func(value []byte) error) error {
	v := s.head.PinLabels(req.Signal)
	defer v.release()
	for _, p := range v.labelParts {
		if err := p.chargedFor(req, s.pages).LabelValues(ctx, req.Tenant, name, req.Matchers, emit); err != nil {
			return p.named(err)
		}
	}
	return v.bufferedLabels(req, func(l model.Labels) error {
		if value := l.Get(name); value != nil {
			return emit(value)
		}
		return nil
	})
}

// bufferedLabels visits the label sets that are in no part yet.
func (v *view) bufferedLabels(req *model.Request, visit func(model.Labels) error) error {
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
