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

// cursorMerge walks the series of several cursors in key order, every key once. It is not generic over the
// kind of cursor: methods of a type parameter are called through two tables, for each series of each cursor.
type cursorMerge struct {
	walked  []seriesCursor // all cursors, in the order of their sources
	metrics *metrics

	begun  int                       // how many of them have been moved
	later  heap.Heap[uint64, uint64] // cursors whose series is after the current one, by its key
	group  []int                     // indexes of the cursors that have the current series
	key    model.Key
	labels model.Labels
	closed bool
	err    error
}

// next moves to the next series. It returns false at the end or on an error.
func (m *cursorMerge) next(ctx context.Context) bool {
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

// advance moves the cursors of the current series, and those that are new, to their next series. It reports
// whether any cursor has one.
func (m *cursorMerge) advance(ctx context.Context) (some bool, err error) {
	for ; m.begun < len(m.walked); m.begun++ {
		m.group = append(m.group, m.begun)
	}
	for _, i := range m.group {
		switch c := m.walked[i]; {
		case c.Next(ctx):
			k := c.Key()
			m.later.Push(heap.Item[uint64, uint64]{Key: k.Hi, Tie: k.Lo, Index: i})
		case c.Err() != nil:
			return false, c.Err()
		}
	}
	m.group = m.group[:0]
	return m.later.Len() > 0, nil
}

func (m *cursorMerge) merge(ctx context.Context) (bool, error) {
	some, err := m.advance(ctx)
	if !some || err != nil {
		return false, err
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
func (m *cursorMerge) chooseLabels() {
	m.labels = nil
	for _, i := range m.group {
		l := m.walked[i].Labels()
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
func (m *cursorMerge) Key() model.Key { return m.key }

// Labels returns the labels of the current series, which may be nil if the request does not ask for them.
// They are valid until the next call of Next.
func (m *cursorMerge) Labels() model.Labels { return m.labels }

// Err returns the error that ended the walk.
func (m *cursorMerge) Err() error { return m.err }

// fail ends the walk with an error and returns false.
func (m *cursorMerge) fail(err error) bool {
	m.err = errors.Join(m.err, err)
	m.later.Reset()
	m.group = nil
	return false
}

// Close releases what the cursors pin. It may be called more than once.
func (m *cursorMerge) Close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	return closeAll(m.walked)
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
