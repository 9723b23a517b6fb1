package head

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/known"
)

// rebuildKnown fills the known set from the label parts, while writes go on: what is not in it yet carries
// its labels once more.
func (h *Head) rebuildKnown(ctx context.Context) (err error) {
	h.mu.Lock()
	parts := h.pinPartsLocked(func(i *local.Info) bool { return i.Kind == local.Labels })
	h.mu.Unlock()
	sets := int64(0)
	for _, p := range parts {
		sets += int64(p.Info.Series)
	}
	err = h.known.Reserve(sets)
	for _, p := range parts {
		if err == nil {
			err = p.WrapError(h.addKnown(ctx, p))
		}
		p.Unpin()
	}
	if err == nil {
		h.knownRebuilt.Store(true)
	}
	return err
}

func (h *Head) addKnown(ctx context.Context, p *local.Part) error {
	const many = 1 << 14
	var l known.Lookup
	found := make([]model.Key, 0, many)
	keys := p.Reader.Keys(ctx, "")
	for _, t := range p.Reader.Meta().Tenants {
		id := h.tenants.must(t.Name)
		keys.Enter(t.Name)
		for more := true; more; {
			if more = keys.Next(); more {
				found = append(found, keys.Key())
			}
			if !more || len(found) == many {
				h.known.InsertAll(&l, id, p.Info.Signal, found)
				found = found[:0]
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		if err := keys.Err(); err != nil {
			return err
		}
	}
	return nil
}
