package progress

import (
	"context"
	"fmt"
)

// question is asked for all queries that came before it was: one that was asked earlier may not know what was
// acknowledged since.
type question struct {
	done chan struct{}
	err  error
}

// refresh asks the bucket for ships, and Kafka for the ends of partitions. Queries that wait for the question
// before share the next one.
func (l *Log) refresh(ctx context.Context) error {
	l.mu.Lock()
	q := l.next
	if q == nil {
		q = &question{done: make(chan struct{})}
		l.next = q
		l.done.Go(func() { l.answer(q) })
	}
	l.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
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
	_ = l.ask(ctx) // what depends on the ends knows of the error
}
