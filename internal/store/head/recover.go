package head

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// Recover applies what the journal has and parts have not: replay is to call its function with every batch from a
// sequence number on, in order. It is called between Open and Start.
//
// Buffers that fill are flushed beside it, as at any other time, so that a journal of any length takes no more memory
// than running does; and what is left in the buffers at the end is flushed when everybody else is served already.
func (h *Head) Recover(ctx context.Context, replay func(ctx context.Context, from uint64, fn func(seq uint64, b *model.Batch) error) error) error {
	h.startFlushing()
	unhook := context.AfterFunc(ctx, h.Shut) // Apply may be waiting for a disk that has no room
	defer unhook()
	return replay(ctx, h.Covered()+1, func(seq uint64, b *model.Batch) error {
		h.Apply(seq, b)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", model.ErrClosed, err)
		}
		return nil
	})
}
