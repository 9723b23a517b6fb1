package names

import (
	"bytes"
	"container/heap"
	"context"

	"github.com/shaledb/shale/internal/model"
)

// List calls emit with all names in order, each once. The bytes are valid during the call. Its memory does
// not grow with the number of names, except those that are buffered and in no order yet.
func (f *Finder) List(ctx context.Context, q *Query, emit func(name []byte) error) error {
	r := f.request(q)
	sets, release, err := f.o.From.Names(ctx, r)
	if err != nil {
		return err
	}
	defer release()
	var merge merge
	for _, s := range sets {
		w := s.Walk(ctx)
		if w == nil {
			sorted := &model.NameList{Times: s.Range()}
			if err := s.Each(ctx, func(name []byte) error { return r.Quota.TakeBytes(sorted.AddName(name)) }); err != nil {
				return err
			}
			sorted.Sort()
			w = sorted.Walk(ctx)
		}
		if w.Seek(nil) {
			merge = append(merge, w)
		} else if err := w.Err(); err != nil {
			return err
		}
	}
	heap.Init(&merge)
	return merge.run(ctx, emit)
}

// merge is walks by their current names.
type merge []model.NameWalk

func (m merge) Len() int           { return len(m) }
func (m merge) Less(i, j int) bool { return bytes.Compare(m[i].Name(), m[j].Name()) < 0 }
func (m merge) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }

// Push is never called: the number of walks only falls.
func (m *merge) Push(any) {}

// Pop is [heap.Interface.Pop].
func (m *merge) Pop() any {
	n := len(*m) - 1
	last := (*m)[n]
	*m = (*m)[:n]
	return last
}

func (m *merge) run(ctx context.Context, emit func(name []byte) error) error {
	var last []byte
	for n := 0; m.Len() > 0; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		w := (*m)[0]
		if name := w.Name(); n == 0 || !bytes.Equal(name, last) {
			if err := emit(name); err != nil {
				return err
			}
			last = append(last[:0], name...)
		}
		switch {
		case w.Next():
			heap.Fix(m, 0)
		case w.Err() != nil:
			return w.Err()
		default:
			heap.Pop(m)
		}
	}
	return nil
}
