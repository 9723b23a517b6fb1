package model

import (
	"context"
	"fmt"
)

// Turn is a lock whose wait ends with a context, because its holder may wait for another system. Make one
// with [NewTurn].
type Turn chan struct{}

// NewTurn returns a lock that is free.
func NewTurn() Turn { return make(Turn, 1) }

// Take waits for the lock. The error is of class transient.
func (t Turn) Take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for another request of this process: %w", ErrTransient, ctx.Err())
	}
}

// Give frees the lock.
func (t Turn) Give() { <-t }
