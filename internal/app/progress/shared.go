package progress

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// question is asked for all queries that came before it was: one that was asked earlier may not know what was
// acknowledged since.
type question struct {
	done chan struct{}
	err  error
	// ends is what Kafka has answered, and failed why it has not.
	ends   map[partition]int64
	failed error
}

// refresh asks the bucket for ships, and Kafka for the ends of partitions. Queries that wait for the question
// before share the next one. It returns the question with its answer.
func (l *Log) refresh(ctx context.Context) (*question, error) {
	l.mu.Lock()
	if l.running.Err() != nil {
		l.mu.Unlock()
		return nil, fmt.Errorf("the ends of partitions: %w", model.ErrClosed)
	}
	q := l.next
	if q == nil {
		q = &question{done: make(chan struct{})}
		l.next = q
		l.done.Go(func() { l.answer(q) })
	}
	l.mu.Unlock()
	select {
	case <-q.done:
		return q, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answer asks a question once the one before is answered.
func (l *Log) answer(q *question) {
	defer close(q.done)
	l.asking.Lock()
	defer l.asking.Unlock()
	l.mu.Lock()
	l.next = nil // queries that come from here on ask again
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.running, l.o.Ask)
	defer cancel()
	if err := l.o.Catalog.Poll(ctx); err != nil {
		q.err = fmt.Errorf("what the bucket covers: %w", err)
		return
	}
	q.ends, q.failed = l.endsNow(ctx)
}
