package part

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/text"
)

// MergeOptions are hooks of a merge.
type MergeOptions struct {
	// OnCollision, if set, is told of two label sets under one key. The first stays. What it gets is valid
	// until it returns.
	OnCollision func(tenant string, k model.Key, kept, dropped model.Labels)
}

// Merge joins streams, oldest first. Of one series the rows are concatenated oldest first and normalised, so
// that the last arrival wins; the first labels that are there stay. Its texts come oldest first, to be joined
// by [Writer.Text]. What emit gets is valid until it returns. An error of emit ends the merge and is returned
// as it is.
func Merge(ctx context.Context, inputs []Stream, emit func(tenant string, k model.Key, l model.Labels, rows *model.SeriesRows, text []text.Series) error, o MergeOptions) error {
	m := merger{inputs: make([]mergeInput, 0, len(inputs)), heap: make([]int32, 0, len(inputs)), few: len(inputs) <= fewInputs}
	for i, s := range inputs {
		m.inputs = append(m.inputs, mergeInput{Stream: s})
		if err := m.advance(ctx, int32(i)); err != nil {
			return err
		}
	}
	for len(m.heap) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.series(ctx, emit, o); err != nil {
			return err
		}
	}
	return nil
}

// mergeInput is a stream with its position, so that comparing does not call the stream.
type mergeInput struct {
	Stream
	tenant string
	key    model.Key
	begun  bool
}

// fewInputs is up to how many inputs each is looked at for the least key, which is their usual number. A
// series is mostly in all of them, so that a heap would take as many steps down as up for it.
const fewInputs = 16

// merger holds the inputs that are not at their end: few as a list by age, many in a heap by (tenant, key,
// age).
type merger struct {
	inputs []mergeInput
	heap   []int32
	few    bool
	// taken are the inputs with the current series, oldest first.
	taken []int32
	rows  model.SeriesRows
	text  []text.Series
}

// series merges and emits the least series.
func (m *merger) series(ctx context.Context, emit func(string, model.Key, model.Labels, *model.SeriesRows, []text.Series) error, o MergeOptions) error {
	m.take()
	first := m.taken[0]
	tenant, key := m.inputs[first].tenant, m.inputs[first].key
	var labels model.Labels
	rows := m.inputs[first].Rows()
	if len(m.taken) > 1 {
		m.rows.Reset()
		rows = &m.rows
	}
	m.text = m.text[:0]
	for _, i := range m.taken {
		in := &m.inputs[i]
		if t := in.Text(); t != nil {
			m.text = append(m.text, t)
		}
		if len(m.taken) > 1 {
			rows.Append(in.Rows())
		}
		switch l := in.Labels(); {
		case l == nil:
		case labels == nil:
			labels = l
		case o.OnCollision != nil && !bytes.Equal(labels, l):
			o.OnCollision(tenant, key, labels, l)
		}
	}
	rows.Normalize()
	if err := emit(tenant, key, labels, rows, m.text); err != nil {
		return err
	}
	for _, i := range m.taken {
		if err := m.advance(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// take takes the inputs with the least series, oldest first.
func (m *merger) take() {
	if m.few {
		m.takeFew()
		return
	}
	first := m.pop()
	tenant, key := m.inputs[first].tenant, m.inputs[first].key
	m.taken = append(m.taken[:0], first)
	for len(m.heap) > 0 {
		next := &m.inputs[m.heap[0]]
		if next.key != key || next.tenant != tenant {
			break
		}
		m.taken = append(m.taken, m.pop())
	}
}

func (m *merger) takeFew() {
	m.taken = append(m.taken[:0], m.heap[0])
	least := &m.inputs[m.heap[0]]
	for _, i := range m.heap[1:] {
		x := &m.inputs[i]
		c := x.key.Compare(least.key)
		if x.tenant != least.tenant {
			c = strings.Compare(x.tenant, least.tenant)
		}
		if c > 0 {
			continue
		}
		if c < 0 {
			m.taken, least = m.taken[:0], x
		}
		m.taken = append(m.taken, i)
	}
}

// advance moves an input to its next series, or out of those that are not at their end.
func (m *merger) advance(ctx context.Context, i int32) error {
	in := &m.inputs[i]
	tenant, key, begun := in.tenant, in.key, in.begun
	if !in.Next(ctx) {
		if m.few && begun {
			m.heap = slices.DeleteFunc(m.heap, func(other int32) bool { return other == i })
		}
		return in.Err()
	}
	in.key, in.begun = in.Key(), true
	if t := in.Tenant(); t != in.tenant {
		in.tenant = t
	}
	if begun && (in.tenant < tenant || in.tenant == tenant && !key.Less(in.key)) {
		return fmt.Errorf("merge: input %d: %w", i, column.Corrupt("series %s of %q after %s of %q", in.key, in.tenant, key, tenant))
	}
	switch {
	case !m.few:
		m.push(i)
	case !begun:
		m.heap = append(m.heap, i)
	}
	return nil
}

func (m *merger) less(a, b int32) bool {
	x, y := &m.inputs[a], &m.inputs[b]
	if x.tenant != y.tenant {
		return x.tenant < y.tenant
	}
	if c := x.key.Compare(y.key); c != 0 {
		return c < 0
	}
	return a < b
}

func (m *merger) push(i int32) {
	m.heap = append(m.heap, i)
	for at := len(m.heap) - 1; at > 0; {
		parent := (at - 1) / 2
		if !m.less(m.heap[at], m.heap[parent]) {
			return
		}
		m.heap[at], m.heap[parent] = m.heap[parent], m.heap[at]
		at = parent
	}
}

func (m *merger) pop() int32 {
	top := m.heap[0]
	last := len(m.heap) - 1
	m.heap[0] = m.heap[last]
	m.heap = m.heap[:last]
	for at := 0; ; {
		child := 2*at + 1
		if child >= last {
			return top
		}
		if child+1 < last && m.less(m.heap[child+1], m.heap[child]) {
			child++
		}
		if !m.less(m.heap[child], m.heap[at]) {
			return top
		}
		m.heap[at], m.heap[child] = m.heap[child], m.heap[at]
		at = child
	}
}
