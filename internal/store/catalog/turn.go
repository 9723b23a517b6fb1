package catalog

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// turn is a lock whose wait ends with a context: whoever holds it may wait for the bucket for minutes.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for another commit of this process: %w", model.ErrTransient, ctx.Err())
	}
}

func (t turn) give() { <-t }
