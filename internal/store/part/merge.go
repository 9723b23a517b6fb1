package part

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/heap"
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

// Merge joins streams, oldest first. The rows of a series are concatenated oldest first and normalised, so
// that the last arrival wins; the oldest labels stay. Its texts are passed oldest first, for [Writer.Text]
// to join. The arguments of emit are valid until it returns. An error of emit ends the merge and is
// returned unchanged.
func Merge(ctx context.Context, inputs []Stream, emit func(tenant string, k model.Key, l model.Labels, rows *model.SeriesRows, text []text.Series) error, o MergeOptions) error {
	m := merger{inputs: make([]mergeInput, 0, len(inputs)), list: make([]int, 0, len(inputs)), few: len(inputs) <= fewInputs}
	for i, s := range inputs {
		m.inputs = append(m.inputs, mergeInput{stream: s})
		if err := m.advance(ctx, i); err != nil {
			return err
		}
	}
	for len(m.list)+m.heap.Len() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.series(ctx, emit, o); err != nil {
			return err
		}
	}
	return nil
}

// mergeInput is a stream and its current series, which is nil before the first.
type mergeInput struct {
	stream Stream
	series *Series
	// The tenant and key of the series. The stream reuses its series, and these tell whether it ascends.
	tenant string
	key    model.Key
}

// fewInputs is the most inputs that are searched linearly for the least key, and more than there usually are.
// Most series are in all inputs, so a heap would move every input for each series. See BenchmarkMerge.
const fewInputs = 16

// merger holds the inputs that are not at their end. Few are in the list, by age. Of many, those of the
// current tenant are in the heap, by key, and those of later tenants in the list.
type merger struct {
	inputs []mergeInput
	few    bool
	list   []int
	tenant string
	heap   heap.Heap[uint64, uint64]
	// taken are the inputs with the current series, oldest first.
	taken []int
	rows  model.SeriesRows
	text  []text.Series
}

// series merges and emits the least series.
func (m *merger) series(ctx context.Context, emit func(string, model.Key, model.Labels, *model.SeriesRows, []text.Series) error, o MergeOptions) error {
	m.gatherLeast()
	first := m.inputs[m.taken[0]].series
	var labels model.Labels
	rows := first.Rows
	if len(m.taken) > 1 {
		m.rows.Reset()
		rows = &m.rows
	}
	m.text = m.text[:0]
	for _, i := range m.taken {
		s := m.inputs[i].series
		if s.Text != nil {
			m.text = append(m.text, s.Text)
		}
		if len(m.taken) > 1 {
			rows.Append(s.Rows)
		}
		switch l := s.Labels; {
		case l == nil:
		case labels == nil:
			labels = l
		case o.OnCollision != nil && !bytes.Equal(labels, l):
			o.OnCollision(first.Tenant, first.Key, labels, l)
		}
	}
	rows.Normalize()
	if err := emit(first.Tenant, first.Key, labels, rows, m.text); err != nil {
		return err
	}
	for _, i := range m.taken {
		if err := m.advance(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// gatherLeast gathers the inputs with the least series, oldest first. It removes them from the heap, but not
// from the list.
func (m *merger) gatherLeast() {
	if m.few {
		m.gatherLeastOfFew()
		return
	}
	if m.heap.Len() == 0 {
		m.nextTenant()
	}
	first := m.heap.Pop()
	m.taken = append(m.taken[:0], first.Index)
	for m.heap.Len() > 0 {
		if next := m.heap.First(); next.Key != first.Key || next.Tie != first.Tie {
			break
		}
		m.taken = append(m.taken, m.heap.Pop().Index)
	}
	slices.Sort(m.taken)
}

// nextTenant moves the inputs of the least tenant from the list to the heap.
func (m *merger) nextTenant() {
	m.tenant = m.inputs[m.list[0]].tenant
	for _, i := range m.list[1:] {
		m.tenant = min(m.tenant, m.inputs[i].tenant)
	}
	waiting := m.list
	m.list = m.list[:0]
	for _, i := range waiting {
		m.add(i)
	}
}

// add puts an input where those of its tenant wait.
func (m *merger) add(i int) {
	in := &m.inputs[i]
	if m.few || in.tenant != m.tenant {
		m.list = append(m.list, i)
		return
	}
	m.heap.Push(heap.Item[uint64, uint64]{Key: in.key.Hi, Tie: in.key.Lo, Index: i})
}

func (m *merger) gatherLeastOfFew() {
	m.taken = append(m.taken[:0], m.list[0])
	least := &m.inputs[m.list[0]]
	for _, i := range m.list[1:] {
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
func (m *merger) advance(ctx context.Context, i int) error {
	in := &m.inputs[i]
	begun := in.series != nil
	s, err := in.stream.Next(ctx)
	if s == nil {
		if m.few && begun {
			m.list = slices.DeleteFunc(m.list, func(other int) bool { return other == i })
		}
		return err
	}
	in.series = s
	same := s.Tenant == in.tenant
	if begun && (same && !in.key.Less(s.Key) || !same && s.Tenant < in.tenant) {
		return fmt.Errorf("merge: input %d: %w", i, column.Corrupt("series %s of %q after %s of %q", s.Key, s.Tenant, in.key, in.tenant))
	}
	if in.key = s.Key; !same {
		in.tenant = s.Tenant
	}
	if !m.few || !begun {
		m.add(i)
	}
	return nil
}
