package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Retry repeats requests that fail with an error of class [model.ErrTransient]. Servers and goroutines may
// share it.
type Retry struct {
	// Patience bounds how long a request is retried. After one request has failed in this way, no request is
	// retried until one succeeds.
	Patience time.Duration
	tired    atomic.Bool
}

// until makes attempts until one succeeds or patience ends. Without a Retry it makes one.
func (r *Retry) until(ctx context.Context, attempt func() error) error {
	if r == nil {
		return attempt()
	}
	deadline := time.Now().Add(r.Patience)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := attempt()
		if !errors.Is(err, model.ErrTransient) {
			r.tired.Store(false)
			return err
		}
		if time.Now().After(deadline) || r.tired.Load() {
			r.tired.Store(true)
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", model.ErrClosed, ctx.Err())
		case <-time.After(wait):
		}
	}
}
