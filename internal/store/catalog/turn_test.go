package catalog

import (
	"context"
	"errors"
	"testing"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// stuck does not answer the creation of a record until it may.
type stuck struct {
	bucket.Bucket
	asked, may chan struct{}
}

func (s *stuck) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	select {
	case s.asked <- struct{}{}:
		<-s.may
	default:
	}
	return s.Bucket.PutIfAbsent(ctx, name, data)
}

// TestCommitsWait: while the bucket does not answer a commit, whoever waits for it may give up.
func TestCommitsWait(t *testing.T) {
	b := &stuck{Bucket: memory(t), asked: make(chan struct{}), may: make(chan struct{})}
	c := open(t, b, nil)
	upload := func(context.Context, string) error { return nil }
	of := func(node string) Ship { return Ship{Covered: []Coverage{{Node: node, Epoch: 1, From: 1, To: 5}}} }
	first := make(chan error)
	go func() {
		_, err := c.Ship(ctx, of("a"), upload)
		first <- err
	}()
	<-b.asked
	waiting, cancel := context.WithCancel(ctx)
	second := make(chan error)
	go func() {
		_, err := c.Ship(waiting, of("b"), upload)
		second <- err
	}()
	cancel()
	if err := <-second; !errors.Is(err, model.ErrTransient) || !errors.Is(err, context.Canceled) {
		t.Errorf("a ship that has waited: %v", err)
	}
	close(b.may)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if _, err := c.Ship(ctx, of("b"), upload); err != nil {
		t.Error(err)
	}
}
