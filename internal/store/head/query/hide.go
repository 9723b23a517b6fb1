package query

import (
	"context"

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

// hiding is what deletions hide of the current series: in the parts and runs below each fence.
type hiding struct {
	fences []Fence // those that match the series, in the order of the journal
	labels model.Labels
}

// setSeries chooses among the fences of the tenant those that match a series, and reports whether there are
// any. The labels must stay until the next call.
func (h *hiding) setSeries(all []Fence, l model.Labels) bool {
	h.fences, h.labels = h.fences[:0], l
	for _, f := range all {
		if f.Deletion.Matches(l) {
			h.fences = append(h.fences, f)
		}
	}
	return len(h.fences) > 0
}

// below returns what is hidden in a part or run whose last sequence number is seqHi.
func (h *hiding) below(seqHi uint64) (cuts deletion.Cuts) {
	for _, f := range h.fences {
		if seqHi < f.Seq {
			cuts = cuts.Add(f.Deletion, h.labels)
		}
	}
	return cuts
}

// eachSeries visits the labels of the series that have rows left in the request's range. Label parts know
// series whose rows are all deleted, too.
func (s *Source) eachSeries(ctx context.Context, req *model.Request, visit func(model.Labels) error) error {
	r := *req
	r.LabelsOnly, r.Unlabelled = true, false
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
