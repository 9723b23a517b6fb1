package query

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/deletion"
)

// Fence is a deletion at its place in the journal: it hides rows of records with sequence numbers below Seq.
// Every part and run lies wholly below or above it.
type Fence struct {
	Seq      uint64
	Deletion *deletion.Deletion
}

// fencesOf returns the fences of a tenant.
func (v *View) fencesOf(tenant string) (all []Fence) {
	for _, f := range v.Fences {
		if f.Deletion.Tenant == tenant {
			all = append(all, f)
		}
	}
	return all
}

// origin is what decides whether rows of a part or run may be hidden.
type origin struct {
	seqHi uint64 // the last sequence number
	from  int64  // a lower bound of the times
}

// hiding is what is hidden of the current series: by deletions in the parts and runs below each fence, and by
// retention everywhere.
type hiding struct {
	fences []Fence // those that match the series, in the order of the journal
	labels model.Labels
	before int64 // the time before which rows of the series have expired
}

// setSeries chooses among the fences of the tenant those that match a series, and the horizon of the series.
// It reports whether any row from a time on may be hidden. The labels must stay until the next call.
func (h *hiding) setSeries(all []Fence, horizon *model.Horizon, from int64, l model.Labels) bool {
	h.fences, h.labels, h.before = h.fences[:0], l, math.MinInt64
	for _, f := range all {
		if f.Deletion.Matches(l) {
			h.fences = append(h.fences, f)
		}
	}
	if horizon.MayHide(from) {
		h.before = horizon.Before(l)
	}
	return len(h.fences) > 0 || from < h.before
}

// cuts returns what is hidden in a part or run.
func (h *hiding) cuts(o origin) (cuts deletion.Cuts) {
	if o.from < h.before {
		cuts = cuts.Before(h.before)
	}
	for _, f := range h.fences {
		if o.seqHi < f.Seq {
			cuts = cuts.Add(f.Deletion, h.labels)
		}
	}
	return cuts
}

// listsHidden reports whether the label store may list series of which all rows are hidden, so that their
// rows must be looked at.
func (v *View) listsHidden(req *model.Request) bool {
	return len(v.fencesOf(req.Tenant)) > 0 || req.Horizon != nil
}

// eachSeries visits the labels of the series that have rows left in the request's range. Label parts know
// series whose rows are all hidden, too.
func (s *Source) eachSeries(ctx context.Context, req *model.Request, visit func(model.Labels) error) error {
	r := *req
	r.LabelsOnly, r.Unlabelled = true, false
	r.Cost.Reach.AddRows(r.Signal, r.Range)
	cursors, err := s.Select(ctx, &r)
	for _, c := range cursors {
		for err == nil && c.Next(ctx) {
			err = visit(c.Labels())
		}
		if err == nil {
			err = c.Err()
		}
		_ = c.Close() // giving back does not fail
	}
	return err
}
