package admit

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func hashOf(n int) uint64 { return rand.New(rand.NewPCG(uint64(n), 1)).Uint64() }

func TestSecondQueryAdmits(t *testing.T) {
	f := New[string](1<<20, 100)
	for range 2 {
		if f.Offer(hashOf(1), 1, 10, "one") {
			t.Error("one query admits a value")
		}
	}
	if _, ok := f.Use(hashOf(1), 1); ok {
		t.Error("one query admits a value that it uses twice")
	}
	if v, ok := f.Peek(hashOf(1)); !ok || v != "one" {
		t.Errorf("peek: %q, %t", v, ok)
	}
	if v, ok := f.Use(hashOf(1), 2); !ok || v != "one" {
		t.Errorf("a second query: %q, %t", v, ok)
	}
	if _, ok := f.Peek(hashOf(1)); ok || f.Bytes() != 0 {
		t.Errorf("an admitted value still waits, with %d bytes", f.Bytes())
	}
	f.Offer(hashOf(2), 1, 10, "two")
	if !f.Offer(hashOf(2), 2, 10, "two") {
		t.Error("a second query that reads the value does not admit it")
	}
}

// TestGhosts: a value that left the queue is admitted when another query reads it, also after a restart.
func TestGhosts(t *testing.T) {
	const values = 100
	f := New[int](10*(100+itemBytes), 8*values)
	for i := range values {
		if f.Offer(hashOf(i), 1, 100, i) {
			t.Fatalf("value %d is admitted at once", i)
		}
	}
	if got, most := f.Bytes(), int64(10*(100+itemBytes)); got != most {
		t.Errorf("%d bytes wait, expected %d", got, most)
	}
	for i := range values - 10 {
		if _, ok := f.Use(hashOf(i), 2); ok {
			t.Fatalf("value %d has left the queue, and is returned", i)
		}
	}
	restarted := New[int](1<<20, 8*values)
	restarted.Restore(f.Ghosts())
	for name, f := range map[string]*Filter[int]{"same": f, "restarted": restarted} {
		t.Run(name, func(t *testing.T) {
			for i := range values - 10 {
				if f.Offer(hashOf(i), 1, 100, i) {
					t.Errorf("value %d is admitted by the query that read it first", i)
				}
			}
		})
	}
	again := New[int](1<<20, 8*values)
	again.Restore(f.Ghosts())
	admitted := 0
	for i := range values - 10 {
		if again.Offer(hashOf(i), 3, 100, i) {
			admitted++
		}
	}
	if admitted < values*8/10 {
		t.Errorf("%d of %d values are admitted by their hashes", admitted, values-10)
	}
}

// TestBounded: neither the queue nor the hashes grow beyond their bounds.
func TestBounded(t *testing.T) {
	const bytes, ghosts = 1 << 16, 64
	f := New[int](bytes, ghosts)
	for i := range 20_000 {
		f.Offer(hashOf(i), uint16(i), int64(i%3000), i)
		if got := f.Bytes(); got > bytes || got < 0 {
			t.Fatalf("%d bytes wait, of at most %d", got, bytes)
		}
	}
	if n := len(f.Ghosts()); n > ghosts || n < ghosts/2 {
		t.Errorf("%d hashes, of at most %d", n, ghosts)
	}
	if f.Offer(hashOf(-1), 1, bytes, 0) || f.Bytes() > bytes {
		t.Error("a value larger than the queue waits in it")
	}
}

// TestResize: what waits, and what has left the queue, is known after a change of the bounds, but for what is
// not to be kept.
func TestResize(t *testing.T) {
	const values = 100
	f := New[int](50*(100+itemBytes), 16*values)
	for i := range values {
		f.Offer(hashOf(i), 1, 100, i)
	}
	keep := func(hash uint64) bool { return hash>>16&1 == 0 }
	f.Resize(10*(100+itemBytes), 8*values, keep)
	if got := f.Bytes(); got > 10*(100+itemBytes) || got == 0 {
		t.Errorf("%d bytes wait", got)
	}
	kept, lost := 0, 0
	for i := range values {
		admitted := f.Offer(hashOf(i), 2, 100, i)
		switch {
		case !keep(hashOf(i)) && admitted:
			t.Errorf("value %d is known", i)
		case keep(hashOf(i)) && admitted:
			kept++
		case keep(hashOf(i)):
			lost++ // by a full bucket of hashes
		}
	}
	if kept < 30 || lost > kept/10 {
		t.Errorf("%d values are known, and %d not", kept, lost)
	}
	f.Resize(0, 8, nil)
	if f.Bytes() != 0 || len(f.Ghosts()) > 8 {
		t.Errorf("%d bytes wait, and %d hashes", f.Bytes(), len(f.Ghosts()))
	}
}

func BenchmarkFilter(b *testing.B) {
	hashes := make([]uint64, 1<<16)
	for i := range hashes {
		hashes[i] = hashOf(i)
	}
	for _, name := range []string{"use", "offer"} {
		b.Run(name, func(b *testing.B) {
			f := New[int](1<<30, 1<<20)
			for i, h := range hashes {
				f.Offer(h, 1, 100, i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if h := hashes[i%len(hashes)]; name == "use" {
					f.Use(h, 1)
				} else {
					f.Offer(h, 1, 100, i)
				}
			}
		})
	}
}

func ExampleFilter() {
	f := New[string](1<<20, 1000)
	const hash = 42
	fmt.Println(f.Offer(hash, 1, 5, "value"), f.Offer(hash, 1, 5, "value"), f.Offer(hash, 2, 5, "value"))
	// Output: false false true
}
