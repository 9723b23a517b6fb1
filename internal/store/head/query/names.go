package query

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// Names is Names of a name source of package read: the names of each label part, and those that are buffered.
// They may be names of series whose rows are not in the request's range.
func (s *Source) Names(ctx context.Context, req *model.Request) (sets []model.NameSet, release func(), err error) {
	v := s.head.Pin(req.Signal)
	if s.misses(v, req) {
		v.release()
		return nil, func() {}, nil
	}
	always := model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}
	if v.listsHidden(req) {
		defer v.release()
		n := &model.NameList{Times: always}
		if err := s.eachSeries(ctx, req, func(l model.Labels) error { return req.Quota.TakeBytes(n.Add(l)) }); err != nil {
			return nil, nil, err
		}
		n.Sort()
		return []model.NameSet{n}, func() {}, nil
	}
	for _, p := range v.LabelParts {
		if p.Reader.Meta().Tenant(req.Tenant) != nil {
			sets = append(sets, &partNames{p.ChargedReaderFor(req, s.pages).Names(req.Tenant), p.WrapError})
		}
	}
	for _, r := range v.LabelRuns {
		if entries := r.Tenant(req.Tenant); len(entries) > 0 {
			sets = append(sets, runNames{entries})
		}
	}
	return sets, v.release, nil
}

// misses reports whether no row of the tenant in the head is in the request's range. To find out may take as
// long as sorting the buffered rows, so it is done only if the range ends before a row that is in a part.
func (s *Source) misses(v *View, req *model.Request) bool {
	for _, p := range v.DataParts {
		if t := p.Reader.Meta().Tenant(req.Tenant); t != nil && t.Range.Max > req.Range.Max {
			return !s.TimeRange(req.Signal, req.Tenant).Overlaps(req.Range)
		}
	}
	return false
}
