package write

import (
	"context"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
)

// guarded is a store that notices when it is used after it was closed.
type guarded struct {
	closed, late atomic.Bool
}

func (g *guarded) close() { g.closed.Store(true) }

func (g *guarded) use() {
	if g.closed.Load() {
		g.late.Store(true)
	}
}

func (g *guarded) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	g.use()
	return append(dst, 0), nil
}

func (g *guarded) Append(context.Context, *model.Batch) error {
	g.use()
	return nil
}

func (g *guarded) PutMetadata(string, string, model.Metadata) error {
	g.use()
	return nil
}
