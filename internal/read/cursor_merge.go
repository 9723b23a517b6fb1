package read

import (
	"bytes"
	"context"
	"errors"

	"github.com/shaledb/shale/internal/heap"
	"github.com/shaledb/shale/internal/model"
)

// seriesCursor is the part that cursors over samples and cursors over lines have in common.
type seriesCursor interface {
	Next(ctx context.Context) bool
	Key() model.Key
	Labels() model.Labels
	Err() error
	Close() error
}

// cursorMerge walks the series of several cursors in key order, every key once.
type cursorMerge[C seriesCursor] struct {
	cursors []C // all of them, in the order of their sources
	metrics *metrics

	started bool
	later   heap.Heap[uint64, uint64] // cursors whose series is after the current one, by its key
	group   []int                     // indexes of the cursors that have the current series
	key     model.Key
	labels  model.Labels
	closed  bool
	err     error
}

// next moves to the next series. It returns false at the end or on an error.
func (m *cursorMerge[C]) next(ctx context.Context) bool {
	if m.err != nil || m.closed {
		return false
	}
	err := ctx.Err()
	more := false
	if err == nil {
		more, err = m.merge(ctx)
	}
	if err != nil {
		return m.fail(err)
	}
	return more
}

func (m *cursorMerge[C]) merge(ctx context.Context) (bool, error) {
	if !m.started {
		m.started = true
		for i := range m.cursors {
			m.group = append(m.group, i)
		}
	}
	for _, i := range m.group {
		switch c := m.cursors[i]; {
		case c.Next(ctx):
			k := c.Key()
			m.later.Push(heap.Item[uint64, uint64]{Key: k.Hi, Tie: k.Lo, Index: i})
		case c.Err() != nil:
			return false, c.Err()
		}
	}
	m.group = m.group[:0]
	if m.later.Len() == 0 {
		return false, nil
	}
	first := m.later.Pop()
	m.key = model.Key{Hi: first.Key, Lo: first.Tie}
	m.group = append(m.group, first.Index)
	for m.later.Len() > 0 {
		if next := m.later.First(); next.Key != first.Key || next.Tie != first.Tie {
			break
		}
		m.group = append(m.group, m.later.Pop().Index)
	}
	return true, nil
}

// chooseLabels takes the labels of the first cursor in the group that has any, and counts those that
// differ.
func (m *cursorMerge[C]) chooseLabels() {
	m.labels = nil
	for _, i := range m.group {
		l := m.cursors[i].Labels()
		switch {
		case len(l) == 0:
		case m.labels == nil:
			m.labels = l
		case !bytes.Equal(m.labels, l):
			m.metrics.collisions.Inc()
		}
	}
}

// Key returns the key of the current series.
func (m *cursorMerge[C]) Key() model.Key { return m.key }

// Labels returns the labels of the current series, which may be nil if the request does not ask for them.
// They are valid until the next call of Next.
func (m *cursorMerge[C]) Labels() model.Labels { return m.labels }

// Err returns the error that ended the walk.
func (m *cursorMerge[C]) Err() error { return m.err }

// fail ends the walk with an error and returns false.
func (m *cursorMerge[C]) fail(err error) bool {
	m.err = errors.Join(m.err, err)
	m.later.Reset()
	m.group = nil
	return false
}

// Close releases what the cursors pin. It may be called more than once.
func (m *cursorMerge[C]) Close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	return closeAll(m.cursors)
}

func closeAll[C seriesCursor](cursors []C) error {
	var errs []error
	for _, c := range cursors {
		if err := c.Close(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
