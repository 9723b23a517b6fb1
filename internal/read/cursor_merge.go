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
	later   heap.Heap[cursorItem] // cursors whose series is after the current one
	group   []int                 // indexes of the cursors that have the current series
	key     model.Key
	labels  model.Labels
}

// cursorItem is a cursor, by its index, with the key of its series, so that comparing does not call the
// cursor.
type cursorItem struct {
	key   model.Key
	index int
}

// Less orders cursors by key.
func (c cursorItem) Less(o cursorItem) bool { return c.key.Less(o.key) }

// next moves to the next series. It returns false at the end or on an error.
func (m *cursorMerge[C]) next(ctx context.Context) (bool, error) {
	if !m.started {
		m.started = true
		for i := range m.cursors {
			m.group = append(m.group, i)
		}
	}
	for _, i := range m.group {
		switch c := m.cursors[i]; {
		case c.Next(ctx):
			m.later.Push(cursorItem{c.Key(), i})
		case c.Err() != nil:
			return false, c.Err()
		}
	}
	m.group = m.group[:0]
	if m.later.Len() == 0 {
		return false, nil
	}
	m.key = m.later.First().key
	for m.later.Len() > 0 && m.later.First().key == m.key {
		m.group = append(m.group, m.later.Pop().index)
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

// stop drops the series that are left.
func (m *cursorMerge[C]) stop() {
	m.later.Reset()
	m.group = nil
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
