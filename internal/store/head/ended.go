package head

import (
	"context"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// endedLately is how old the rows may be in which retireEnded looks for stale markers. Reading those of an hour
// takes about as much work as merging them once.
const endedLately = time.Hour

// retireEnded makes series leave the known set soon that had ended before a restart, as retireStale did before
// it: the set was rebuilt from labels, which do not tell. A series has ended if a stale marker is its last row
// of those that are still local. One that has become active since the restart stays.
func (h *Head) retireEnded(ctx context.Context) error {
	if h.o.KeepStale {
		return nil
	}
	v := h.Pin(model.Metrics)
	defer func() {
		for _, p := range v.DataParts {
			p.Unpin()
		}
		for _, p := range v.LabelParts {
			p.Unpin()
		}
	}()
	var walks []part.Stream // in the order of arrival
	since := h.o.Now() - int64(endedLately)
	for _, p := range v.DataParts {
		if p.Info.Range.Max >= since {
			walks = append(walks, &namedStream{p.Reader.Stream(), p})
		}
	}
	for _, r := range v.Runs {
		walks = append(walks, r.Stream())
	}
	live, ended, found := h.restoredIdle(), h.idleTicks()-1, false
	for _, w := range walks {
		for s, err := range part.All(ctx, w) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			rows := s.Rows.Family(model.Samples)
			last := rows.Len() - 1
			if last < 0 {
				continue
			}
			tenant, _ := h.tenants.find(s.Tenant)
			switch {
			case rows.IsStale(last):
				found = true
				h.known.Remark(tenant, model.Metrics, s.Key, live, ended)
			case found: // it may have come back
				h.known.Remark(tenant, model.Metrics, s.Key, ended, live)
			}
		}
	}
	return nil
}
