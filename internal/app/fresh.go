package app

import (
	"context"
	"io"

	"github.com/shaledb/shale/internal/store/catalog"
)

// fresh gives the pages of a new block to the tiers of the cache. A block is as good without.
func (e *Engine) fresh(ctx context.Context, b *catalog.Block, file io.ReaderAt) {
	if e.archive == nil { // the replay of the journal may ship before there are tiers
		return
	}
	if err := e.archive.Fresh(ctx, b, file); err != nil && ctx.Err() == nil {
		e.o.Logger.Warn("the pages of a new block could not be given to the cache", "block", b.ID, "err", err)
	}
}
