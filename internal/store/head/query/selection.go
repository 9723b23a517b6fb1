package query

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/labels"
	"github.com/shaledb/shale/internal/store/part"
)

// selection is the series of a request, with or without rows. Cursors add the rows.
type selection struct {
	view   *View
	pages  part.Cache
	req    *model.Request
	series seriesUnion
	sets   setCounts
	fences []Fence // of the tenant
	hidden hiding  // of the current series
	oldest int64   // a lower bound of the times of all rows that may be read
	// listBytes is the part of the request's quota that lists of series take.
	listBytes int64
	err       error
}

// pin takes references to what the request may need.
func (s *Source) pin(req *model.Request) selection {
	v := s.head.Pin(req.Signal)
	fences := v.fencesOf(req.Tenant)
	if (len(fences) > 0 || req.Horizon != nil) && req.Unlabelled { // both are matched by labels
		labelled := *req
		labelled.Unlabelled = false
		req = &labelled
	}
	return selection{view: v, pages: s.pagesFor(req), req: req, fences: fences, hidden: hiding{before: math.MinInt64}, oldest: math.MaxInt64}
}

// mayHide reports whether rows of any series may be hidden.
func (s *selection) mayHide() bool { return len(s.fences) > 0 || s.req.Horizon.MayHide(s.oldest) }

// openSeries finds the series.
func (s *selection) openSeries(ctx context.Context) error {
	req := s.req
	for _, p := range s.view.LabelParts {
		t := p.Reader.Meta().Tenant(req.Tenant)
		if t == nil {
			continue
		}
		series, err := newPartSeries(ctx, p.ChargedReaderFor(req, s.pages), p, req)
		if err != nil {
			return err
		}
		s.listBytes += series.ranks.Bytes()
		s.sets.add(int64(t.Series), int64(series.ranks.Len()))
		s.series.add(series)
	}
	for _, r := range s.view.LabelRuns {
		if entries := labels.Near(r.Tenant(req.Tenant), s.view.Seed, req.Signal, req.Matchers); len(entries) > 0 {
			s.series.add(&runSeries{entries: entries, matchers: req.Matchers})
		}
	}
	return nil
}

// Order puts the head above all blocks: its rows are newer.
func (s *selection) Order() uint64 { return math.MaxUint64 }

func (s *selection) Err() error { return s.err }

// Close releases the parts and the quota.
func (s *selection) Close() error {
	s.view.release()
	_ = s.req.Quota.TakeBytes(-s.listBytes) // giving back never fails
	s.series, s.listBytes = seriesUnion{}, 0
	return nil
}
