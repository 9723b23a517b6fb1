package nametree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

func build(t testing.TB, names []string) []byte {
	b := NewBuilder(func(int64) error { return nil })
	for _, n := range names {
		if err := b.Add([]byte(n)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNamesComeBack: a tree has exactly the names that it was made of, in their order.
func TestNamesComeBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`[ab-]{0,2}(\.[ab-]{0,2}){0,3}`), 1, 60).Draw(rt, "names")
		slices.Sort(names)
		names = slices.Compact(names)
		b := build(t, names)
		if err := Verify(b); err != nil {
			rt.Fatal(err)
		}
		tree, err := Open(b)
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		if err := tree.Each(func(name []byte) error { got = append(got, string(name)); return nil }); err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(got, names) || tree.Names != uint64(len(names)) {
			rt.Fatalf("%q, want %q", got, names)
		}
	})
}

// TestVerifyFindsForgeries: a tree that passes has no walk that leaves it, whatever its bytes.
func TestVerifyFindsForgeries(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("a.host%d.cpu.%d", i/10, i%10))
	}
	slices.Sort(names)
	good := build(t, names)
	r, refused := rand.New(rand.NewPCG(1, 2)), 0
	for range 20_000 {
		b := slices.Clone(good)
		for range 1 + r.IntN(2) {
			at := 4 * r.IntN(len(b)/4)
			binary.LittleEndian.PutUint32(b[at:], uint32(r.IntN(60)-5))
		}
		if walkVerified(t, b) != nil {
			refused++
		}
	}
	if refused < 15_000 {
		t.Errorf("%d of 20,000 forgeries were refused", refused)
	}
	for n := range good {
		if err := walkVerified(t, good[:n]); err == nil {
			t.Fatalf("%d of %d bytes pass", n, len(good))
		}
	}
}

// walkVerified walks a tree if it passes.
func walkVerified(t testing.TB, b []byte) error {
	if err := Verify(b); err != nil {
		if !errors.Is(err, model.ErrCorrupt) {
			t.Fatal(err)
		}
		return err
	}
	tree, err := Open(b)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	last := ""
	enough := errors.New("enough")
	err = tree.Each(func(name []byte) error {
		if n > 0 && string(name) <= last {
			t.Fatalf("%q after %q", name, last)
		}
		last = string(name)
		if n++; n > 10_000 {
			return enough
		}
		return nil
	})
	if err == nil && n != tree.Names {
		t.Fatalf("%d names, says %d", n, tree.Names)
	}
	return nil
}

func FuzzVerify(f *testing.F) {
	f.Add(build(f, []string{"a.b.c", "a.c.c", "b"}))
	f.Add(build(f, nil))
	f.Fuzz(func(t *testing.T, b []byte) { _ = walkVerified(t, b) })
}
