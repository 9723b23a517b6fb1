package query

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/labels"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/rows"
	"github.com/shaledb/shale/internal/store/part"
)

// View is what one query sees of the head: everything that had been applied when it began.
type View struct {
	Runs       []*rows.Run
	LabelRuns  []*labels.Run
	DataParts  []*local.Part // these and labelParts have a reference each
	LabelParts []*local.Part
	Fences     []Fence // in the order of the journal
	Seed       model.KeySeed
	// LabelsLost says that some series may have rows and no labels. These are not found.
	LabelsLost bool
}

// release gives up the references.
func (v *View) release() {
	for _, ps := range [][]*local.Part{v.DataParts, v.LabelParts} {
		for _, p := range ps {
			p.Unpin()
		}
	}
	v.DataParts, v.LabelParts, v.Runs, v.LabelRuns = nil, nil, nil, nil
}

// Pinner gives queries their views. A view must be released.
type Pinner interface {
	// Pin returns everything of a signal.
	Pin(s model.Signal) *View
	// PinLabels returns the label parts and label runs of a signal.
	PinLabels(s model.Signal) *View
}

// Counted is a cache that counts what each request asks for.
type Counted interface {
	part.Cache
	// For returns the cache as a request asks it.
	For(req *model.Request) part.Cache
}

// Source answers queries from the head's parts and buffers.
type Source struct {
	head  Pinner
	pages part.Cache // of pages of parts; may be nil
}

// pagesFor returns the cache as a request asks it.
func (s *Source) pagesFor(req *model.Request) part.Cache {
	if c, ok := s.pages.(Counted); ok {
		return c.For(req)
	}
	return s.pages
}

// NewSource returns a source that keeps pages of parts in a cache. Without one (nil), every query reads and
// decompresses them again.
func NewSource(head Pinner, pages part.Cache) *Source { return &Source{head, pages} }

// TimeRange returns the times of the tenant's oldest and newest rows in the head. Without rows, Min > Max.
func (s *Source) TimeRange(signal model.Signal, tenant string) model.TimeRange {
	v := s.head.Pin(signal)
	defer v.release()
	all := model.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}
	for _, p := range v.DataParts {
		if t := p.Reader.Meta().Tenant(tenant); t != nil {
			all.Min, all.Max = min(all.Min, t.Range.Min), max(all.Max, t.Range.Max)
		}
	}
	for _, r := range v.Runs {
		t := r.Tenant(tenant)
		if t == nil {
			continue
		}
		for i := range t.Families {
			if f := &t.Families[i]; len(f.Keys) > 0 {
				all.Min, all.Max = min(all.Min, f.Range.Min), max(all.Max, f.Range.Max)
			}
		}
	}
	return all
}

// Select returns one cursor over the series that satisfy the request, with the rows of its family. A series
// without such rows in the request's range is left out. Series of logs come without rows: see
// [Source.SelectText].
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
	emitAll := func(l model.Labels) error {
		for n, _, rest, ok := l.Next(); ok; n, _, rest, ok = rest.Next() {
			if err := emit(n); err != nil {
				return err
			}
		}
		return nil
	}
	if v.listsHidden(req) {
		return s.eachSeries(ctx, req, emitAll)
	}
	pages := s.pagesFor(req)
	for _, p := range v.LabelParts {
		if err := p.ChargedReaderFor(req, pages).LabelNames(ctx, req.Tenant, req.Matchers, emit); err != nil {
			return p.WrapError(err)
		}
	}
	return v.bufferedLabels(req, emitAll)
}

// LabelValues emits the values of one label.
func (s *Source) LabelValues(ctx context.Context, req *model.Request, name string, emit func(value []byte) error) error {
	v := s.head.PinLabels(req.Signal)
	defer v.release()
	emitValue := func(l model.Labels) error {
		if value := l.Get(name); value != nil {
			return emit(value)
		}
		return nil
	}
	if v.listsHidden(req) {
		return s.eachSeries(ctx, req, emitValue)
	}
	pages := s.pagesFor(req)
	for _, p := range v.LabelParts {
		if err := p.ChargedReaderFor(req, pages).LabelValues(ctx, req.Tenant, name, req.Matchers, emit); err != nil {
			return p.WrapError(err)
		}
	}
	return v.bufferedLabels(req, emitValue)
}

// bufferedLabels visits the label sets that are in no part yet.
func (v *View) bufferedLabels(req *model.Request, visit func(model.Labels) error) error {
	for _, r := range v.LabelRuns {
		for _, e := range labels.Near(r.Tenant(req.Tenant), v.Seed, req.Signal, req.Matchers) {
			if !labels.Satisfies(e.Labels(), req.Matchers) {
				continue
			}
			if err := visit(e.Labels()); err != nil {
				return err
			}
		}
	}
	return nil
}
