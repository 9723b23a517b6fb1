package remote

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// Holds reports whether a query of a tenant's rows in a range would get any from holders, as fresh as the
// context asks for. If not, its answer depends on the bucket alone, on the view that is taken before the call
// or a later one. No query is refused by an error of it, so the metric of gaps does not count that.
func (s *Source) Holds(ctx context.Context, tenant string, signal model.Signal, r model.TimeRange) (held bool, err error) {
	req := &model.Request{
		Tenant: tenant, Signal: signal, Range: r, LabelsOnly: true, Unlabelled: true, Quota: new(model.Quota), Cost: new(model.Cost),
	}
	if req.Family = model.Samples; signal == model.Logs {
		req.Family = model.Text
	}
	of, _ := request(req)
	streams, err := s.openAgain(ctx, wire.PathSelect, of, req)
	if err != nil {
		return false, err
	}
	for _, st := range streams {
		if err == nil && !held {
			var kind wire.Kind
			kind, _, err = st.next(ctx)
			held = kind == wire.Record
		}
		st.close()
	}
	return held, err
}
