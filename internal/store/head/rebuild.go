package head

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// rebuildKnown fills the known set from the label parts, while writes go on: what is not in it yet carries its labels
// once more.
func (h *Head) rebuildKnown(ctx context.Context) (err error) {
	h.mu.Lock()
	parts := h.pinPartsLocked(func(i *partInfo) bool { return i.Kind == labelPart })
	h.mu.Unlock()
	sets := int64(0)
	for _, p := range parts {
		sets += int64(p.info.Series)
	}
	err = h.known.reserve(sets)
	for _, p := range parts {
		if err == nil {
			err = p.named(h.addKnown(ctx, p))
		}
		p.unpin()
	}
	if err == nil {
		h.knownFull.Store(true)
	}
	return err
}

func (h *Head) addKnown(ctx context.Context, p *localPart) error {
	const many = 1 << 14
	var l lookup
	found := make([]model.Key, 0, many)
	keys := p.reader.Keys(ctx, "")
	for _, t := range p.reader.Meta().Tenants {
		id := h.tenants.must(t.Name)
		keys.Enter(t.Name)
		for more := true; more; {
			if more = keys.Next(); more {
				found = append(found, keys.Key())
			}
			if !more || len(found) == many {
				h.known.insertAll(&l, id, p.info.Signal, found)
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
