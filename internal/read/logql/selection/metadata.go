package selection

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// FilterMetadata adds to the filter of a request what lines must have in their structured metadata. A label
// of that name could be one of the stream too, which only the labels of the selected streams tell.
func (x *Execution) FilterMetadata(ctx context.Context, r model.TimeRange) error {
	if x.Program.TextFilterIf == nil {
		return nil
	}
	all := x.Program.TextFilterIf(func(string) bool { return true })
	if all == nil || x.Program.TextFilter != nil && len(all.Clauses) == len(x.Program.TextFilter.Clauses) {
		return nil
	}
	x.filtered = true
	for i := range x.Requests {
		req := x.Requests[i]
		req.Range, req.LabelsOnly, req.TextFilter = r, true, nil
		before := x.Quota.Charged().Bytes()
		names, _, err := x.Read.LabelNames(ctx, &req, 0)
		if err != nil {
			return err
		}
		taken := make(map[string]bool, len(names))
		for _, n := range names {
			taken[n] = true
		}
		x.Requests[i].TextFilter = x.Program.TextFilterIf(func(name string) bool { return !taken[name] })
		_ = x.Quota.TakeBytes(before - x.Quota.Charged().Bytes()) // of the names; giving back does not fail
	}
	return nil
}
