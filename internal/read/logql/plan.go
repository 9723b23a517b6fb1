package logql

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// filterMetadata adds to the filter of a request what lines must have in their structured metadata. A label of that name could be
// one of the stream too, which only the labels of the selected streams tell.
func (x *execution) filterMetadata(ctx context.Context, e *Engine, r model.TimeRange) error {
	if x.program.textFilterIf == nil {
		return nil
	}
	all := x.program.textFilterIf(func(string) bool { return true })
	if all == nil || x.program.textFilter != nil && len(all.Clauses) == len(x.program.textFilter.Clauses) {
		return nil
	}
	x.filtered = true
	for i := range x.requests {
		req := x.requests[i]
		req.Range, req.LabelsOnly, req.TextFilter = r, true, nil
		names, _, err := e.read.LabelNames(ctx, &req, 0)
		if err != nil {
			return err
		}
		taken := make(map[string]bool, len(names))
		for _, n := range names {
			taken[n] = true
		}
		x.requests[i].TextFilter = x.program.textFilterIf(func(name string) bool { return !taken[name] })
	}
	return nil
}
