package heap

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

type cursor = Item[uint64, uint64]

func TestSortsItems(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		var h Heap[uint64, uint64]
		want := make([]cursor, n)
		for i := range want {
			want[i] = cursor{r.Uint64N(4), r.Uint64N(uint64(n)), i}
			h.Push(want[i])
		}
		slices.SortFunc(want, compare)
		for i, w := range want {
			if got := h.Len(); got != n-i {
				t.Fatalf("%d of %d items: Len is %d", i, n, got)
			}
			if first, got := h.First(), h.Pop(); compare(got, w) != 0 || first != got {
				t.Fatalf("item %d of %d: got %v, First said %v, want the keys of %v", i, n, got, first, w)
			}
		}
	}
}

func compare(a, b cursor) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Tie, b.Tie)) }

// FuzzOperations runs a list of operations on a heap and on a sorted slice. A byte below 64 pops, one below
// 128 replaces the first item by it, one above 250 resets, and any other is pushed.
func FuzzOperations(f *testing.F) {
	f.Add([]byte{200, 129, 0, 0})
	f.Add([]byte{130, 140, 150, 160, 170, 65, 127, 66, 0, 0, 0, 0, 0})
	f.Add([]byte{131, 131, 131, 255, 131, 100, 1})
	f.Add([]byte("\x8f\xa1\x90\xe3\xc4\x80\x00\x99\xf9\xfa\x00\x70\x00\x81\x00"))
	f.Fuzz(func(t *testing.T, operations []byte) {
		var h Heap[byte, byte]
		var sorted []byte
		for _, o := range operations {
			switch {
			case o > 250:
				h.Reset()
				sorted = sorted[:0]
			case o >= 128:
				h.Push(item(o))
				sorted = append(sorted, o)
			case len(sorted) == 0:
			case o >= 64:
				h.ReplaceFirst(item(o))
				sorted[0] = o
			default:
				if got := h.Pop().Index; got != int(sorted[0]) {
					t.Fatalf("Pop returned %d, want %d", got, sorted[0])
				}
				sorted = sorted[1:]
			}
			slices.Sort(sorted)
			if h.Len() != len(sorted) {
				t.Fatalf("Len is %d, want %d", h.Len(), len(sorted))
			}
			if len(sorted) > 0 && h.First() != item(sorted[0]) {
				t.Fatalf("First is %v, want %d", h.First(), sorted[0])
			}
		}
	})
}

// item spreads the bits of a byte over both keys.
func item(o byte) Item[byte, byte] { return Item[byte, byte]{o >> 3, o & 7, int(o)} }

func TestAllocatesOnlyToGrow(t *testing.T) {
	var h Heap[uint64, uint64]
	for i := range 100 {
		h.Push(cursor{Tie: uint64(i)})
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
func (s standard) Less(i, j int) bool { return compare(s[i], s[j]) < 0 }
func (s standard) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *standard) Push(x any)        { *s = append(*s, x.(cursor)) }
func (s *standard) Pop() any {
	last := len(*s) - 1
	c := (*s)[last]
	*s = (*s)[:last]
	return c
}

// lesser is a heap of a type that has a method Less.
type lesser[T interface{ Less(T) bool }] []T

type key struct {
	hi, lo uint64
	index  int
}

func (k key) Less(o key) bool { return k.hi < o.hi || k.hi == o.hi && k.lo < o.lo }

func (h *lesser[T]) push(item T) {
	*h = append(*h, item)
	items := *h
	i := len(items) - 1
	for i > 0 && item.Less(items[(i-1)/2]) {
		items[i] = items[(i-1)/2]
		i = (i - 1) / 2
	}
	items[i] = item
}

func (h *lesser[T]) pop() T {
	items, last := *h, len(*h)-1
	first, item, i := items[0], items[last], 0
	items = items[:last]
	*h = items
	for last > 0 {
		least := 2*i + 1
		if least+1 < last && items[least+1].Less(items[least]) {
			least++
		}
		if least >= last || !items[least].Less(item) {
			items[i] = item
			break
		}
		items[i] = items[least]
		i = least
	}
	return first
}

// BenchmarkMerge takes the least cursor and puts it back with a greater key, as a merge of sorted sources
// does.
func BenchmarkMerge(b *testing.B) {
	steps := make([]uint64, 1<<12)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range steps {
		steps[i] = r.Uint64N(1 << 40)
	}
	for _, n := range []int{2, 4, 32, 256} {
		bench := func(name string, run func(b *testing.B)) { b.Run(fmt.Sprintf("sources=%d/heap=%s", n, name), run) }
		bench("own", func(b *testing.B) {
			var h Heap[uint64, uint64]
			for i := range n {
				h.Push(cursor{steps[i], 0, i})
			}
			for i := 0; b.Loop(); i++ {
				c := h.Pop()
				c.Key += steps[i%len(steps)]
				h.Push(c)
			}
		})
		bench("replace", func(b *testing.B) {
			var h Heap[uint64, uint64]
			for i := range n {
				h.Push(cursor{steps[i], 0, i})
			}
			for i := 0; b.Loop(); i++ {
				c := h.First()
				c.Key += steps[i%len(steps)]
				h.ReplaceFirst(c)
			}
		})
		bench("less", func(b *testing.B) {
			var h lesser[key]
			for i := range n {
				h.push(key{steps[i], 0, i})
			}
			for i := 0; b.Loop(); i++ {
				c := h.pop()
				c.hi += steps[i%len(steps)]
				h.push(c)
			}
		})
		bench("container", func(b *testing.B) {
			var s standard
			for i := range n {
				heap.Push(&s, cursor{steps[i], 0, i})
			}
			for i := 0; b.Loop(); i++ {
				c := heap.Pop(&s).(cursor)
				c.Key += steps[i%len(steps)]
				heap.Push(&s, c)
			}
		})
	}
}
