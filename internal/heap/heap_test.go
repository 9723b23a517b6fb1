package heap

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// cursor is an item of the size that merges of series hold.
type cursor struct {
	hi, lo uint64
	index  int
}

func (c cursor) Less(o cursor) bool { return c.hi < o.hi || c.hi == o.hi && c.lo < o.lo }

type number byte

func (n number) Less(o number) bool { return n < o }

func TestSortsItems(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		var h Heap[cursor]
		want := make([]cursor, n)
		for i := range want {
			want[i] = cursor{hi: r.Uint64N(4), lo: r.Uint64N(uint64(n)), index: i}
			h.Push(want[i])
		}
		slices.SortFunc(want, compare)
		for i, w := range want {
			if got := h.Len(); got != n-i {
				t.Fatalf("%d of %d items: Len is %d", i, n, got)
			}
			if first, got := h.First(), h.Pop(); compare(got, w) != 0 || first != got {
				t.Fatalf("item %d of %d: got %v, First said %v, want the key of %v", i, n, got, first, w)
			}
		}
	}
}

func compare(a, b cursor) int {
	switch {
	case a.Less(b):
		return -1
	case b.Less(a):
		return 1
	}
	return 0
}

// FuzzOperations runs a list of operations on a heap and on a sorted slice. A byte below 64 pops, one below
// 128 replaces the first item by it, one above 250 resets, and any other is pushed.
func FuzzOperations(f *testing.F) {
	f.Add([]byte{200, 129, 0, 0})
	f.Add([]byte{130, 140, 150, 160, 170, 65, 127, 66, 0, 0, 0, 0, 0})
	f.Add([]byte{131, 131, 131, 255, 131, 100, 1})
	f.Add([]byte("\x8f\xa1\x90\xe3\xc4\x80\x00\x99\xf9\xfa\x00\x70\x00\x81\x00"))
	f.Fuzz(func(t *testing.T, operations []byte) {
		var h Heap[number]
		var sorted []number
		for _, o := range operations {
			switch {
			case o > 250:
				h.Reset()
				sorted = sorted[:0]
			case o >= 128:
				h.Push(number(o))
				sorted = append(sorted, number(o))
			case len(sorted) == 0:
			case o >= 64:
				h.ReplaceFirst(number(o))
				sorted[0] = number(o)
			default:
				if got := h.Pop(); got != sorted[0] {
					t.Fatalf("Pop returned %d, want %d", got, sorted[0])
				}
				sorted = sorted[1:]
			}
			slices.Sort(sorted)
			if h.Len() != len(sorted) {
				t.Fatalf("Len is %d, want %d", h.Len(), len(sorted))
			}
			if len(sorted) > 0 && h.First() != sorted[0] {
				t.Fatalf("First is %d, want %d", h.First(), sorted[0])
			}
		}
	})
}

func TestForgetsItems(t *testing.T) {
	var h Heap[cursor]
	for i := range 3 {
		h.Push(cursor{index: i + 1})
	}
	h.Pop()
	if got := h.items[:3][2]; got != (cursor{}) {
		t.Errorf("Pop left %v in memory", got)
	}
	h.Reset()
	if got := h.items[:2]; got[0] != (cursor{}) || got[1] != (cursor{}) {
		t.Errorf("Reset left %v in memory", got)
	}
}

func TestAllocatesOnlyToGrow(t *testing.T) {
	var h Heap[cursor]
	for i := range 100 {
		h.Push(cursor{lo: uint64(i)})
	}
	if n := testing.AllocsPerRun(100, func() {
		c := h.Pop()
		h.Push(c)
		h.ReplaceFirst(c)
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

// standard is the heap of the standard library.
type standard []cursor

func (s standard) Len() int           { return len(s) }
func (s standard) Less(i, j int) bool { return s[i].Less(s[j]) }
func (s standard) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *standard) Push(x any)        { *s = append(*s, x.(cursor)) }
func (s *standard) Pop() any {
	last := len(*s) - 1
	c := (*s)[last]
	*s = (*s)[:last]
	return c
}

// BenchmarkMerge takes the least cursor and puts it back with a greater key, as a merge of sorted sources
// does.
func BenchmarkMerge(b *testing.B) {
	steps := make([]uint64, 1<<12)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range steps {
		steps[i] = r.Uint64N(1 << 40)
	}
	for _, n := range []int{4, 32, 256} {
		b.Run(fmt.Sprintf("sources=%d/heap=own", n), func(b *testing.B) {
			var h Heap[cursor]
			for i := range n {
				h.Push(cursor{lo: steps[i]})
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c := h.Pop()
				c.lo += steps[i%len(steps)]
				h.Push(c)
			}
		})
		b.Run(fmt.Sprintf("sources=%d/heap=replace", n), func(b *testing.B) {
			var h Heap[cursor]
			for i := range n {
				h.Push(cursor{lo: steps[i]})
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c := h.First()
				c.lo += steps[i%len(steps)]
				h.ReplaceFirst(c)
			}
		})
		b.Run(fmt.Sprintf("sources=%d/heap=container", n), func(b *testing.B) {
			var s standard
			for i := range n {
				heap.Push(&s, cursor{lo: steps[i]})
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c := heap.Pop(&s).(cursor)
				c.lo += steps[i%len(steps)]
				heap.Push(&s, c)
			}
		})
	}
}
