package head

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// Recover applies the batches of the journal that are in no part. Replay must call its function with every
// batch from a sequence number on, in order. Recover is called between Open and Start.
//
// Buffers that fill are flushed meanwhile, so that a journal of any length takes no more memory than normal
// operation. Rows that are left in the buffers at the end are flushed when the server already serves.
func (h *Head) Recover(ctx context.Context, replay func(ctx context.Context, from uint64, fn func(seq uint64, b *model.Batch) error) error) error {
	h.startFlushing()
	unhook := context.AfterFunc(ctx, h.Shut) // Apply may be waiting for disk space
	defer unhook()
	return replay(ctx, h.Covered()+1, func(seq uint64, b *model.Batch) error {
		h.Apply(seq, b)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", model.ErrClosed, err)
		}
		return nil
	})
}
