package query

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
)

// LabelCounts counts labels of the series in the label store, as a label counter of package read. Those are
// the active ones, and others with rows that are not in the bucket, whatever the range of the request. A
// series whose labels are stored twice until a merge counts twice. Without matchers it takes time for each
// label, and with matchers for each series that they select.
func (s *Source) LabelCounts(ctx context.Context, req *model.Request, name string, emit func(name, value []byte, series uint64) error) (total uint64, err error) {
	v := s.head.PinLabels(req.Signal)
	defer v.release()
	emitAll := func(l model.Labels) error {
		total++
		for n, value, rest, ok := l.Next(); ok; n, value, rest, ok = rest.Next() {
			if name != "" && string(n) != name {
				continue
			}
			if err := emit(n, value, 1); err != nil {
				return err
			}
		}
		return nil
	}
	if v.listsHidden(req) {
		return total, s.eachSeries(ctx, req, emitAll)
	}
	pages := s.pagesFor(req)
	for _, p := range v.LabelParts {
		t := p.Reader.Meta().Tenant(req.Tenant)
		if t == nil {
			continue
		}
		if len(req.Matchers) > 0 {
			if err := s.countPart(ctx, p, req, emitAll); err != nil {
				return total, err
			}
			continue
		}
		total += uint64(t.Series)
		if err := p.ChargedReaderFor(req, pages).LabelCounts(ctx, req.Tenant, name, emit); err != nil {
			return total, p.WrapError(err)
		}
	}
	return total, v.bufferedLabels(req, emitAll)
}

// countPart visits the labels of the series of a part that satisfy the matchers.
func (s *Source) countPart(ctx context.Context, p *local.Part, req *model.Request, visit func(model.Labels) error) error {
	series, err := newPartSeries(ctx, p.ChargedReaderFor(req, s.pagesFor(req)), p, req)
	if err != nil {
		return err
	}
	held := series.ranks.Bytes()
	defer func() { _ = req.Quota.TakeBytes(-held) }() // giving back never fails
	for {
		ok, err := series.next()
		if err != nil || !ok {
			return err
		}
		if err := visit(series.labels()); err != nil {
			return err
		}
	}
}
