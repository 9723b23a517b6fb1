package cache

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// tierOf is a tier in a map, which keeps whatever it is offered.
type tierOf struct {
	values map[Key]string
	from   Source
	asked  int
	used   int
	closed bool
}

func (t *tierOf) Get(_ context.Context, k Key, _ Asker) Found {
	t.asked++
	if v, ok := t.values[k]; ok {
		return Found{[]byte(v), t.from}
	}
	return Found{}
}

func (t *tierOf) GetMany(ctx context.Context, keys []Key, by Asker, found []Found) {
	for i, k := range keys {
		found[i] = t.Get(ctx, k, by)
	}
}

func (t *tierOf) Has(k Key) bool                 { _, ok := t.values[k]; return ok }
func (t *tierOf) Offer(k Key, _ Asker, v []byte) { t.values[k] = string(v) }
func (t *tierOf) Use(Key, Asker)                 { t.used++ }
func (t *tierOf) Fresh(_ context.Context, k Key, v []byte) bool {
	t.values[k] = string(v)
	return t.from == Disk
}
func (t *tierOf) Close() error { t.closed = true; return nil }

func numbered(n int) Key { return Key{Object: "o", Kind: Stored, Off: int64(n)} }

// TestChain: each value comes from the first tier that has it, and the tiers before that one are offered it.
func TestChain(t *testing.T) {
	tiers := []*tierOf{{from: Disk}, {from: Shared}, {from: Shared}}
	for i, tier := range tiers {
		tier.values = map[Key]string{numbered(i): fmt.Sprint("value ", i)}
	}
	c := Chain(tiers[0], tiers[1], tiers[2])
	keys, found := []Key{numbered(3), numbered(2), numbered(0), numbered(1)}, make([]Found, 4)
	c.GetMany(context.Background(), keys, Asker{}, found)
	want := []Found{{}, {[]byte("value 2"), Shared}, {[]byte("value 0"), Disk}, {[]byte("value 1"), Shared}}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", found, want)
	}
	if tiers[0].asked != 4 || tiers[1].asked != 3 || tiers[2].asked != 2 {
		t.Errorf("the tiers were asked for %d, %d and %d keys", tiers[0].asked, tiers[1].asked, tiers[2].asked)
	}
	for i, has := range [][]int{{0, 1, 2}, {1, 2}, {2}} {
		var values []int
		for k := range maps.Keys(tiers[i].values) {
			values = append(values, int(k.Off))
		}
		if slices.Sort(values); !slices.Equal(values, has) {
			t.Errorf("tier %d has %v, expected %v", i, values, has)
		}
	}
	if f := c.Get(context.Background(), numbered(2), Asker{}); string(f.Value) != "value 2" || f.From != Disk {
		t.Errorf("got %v from %v, expected the first tier to have it now", f.Value, f.From)
	}
	delete(tiers[0].values, numbered(2))
	if f := c.Get(context.Background(), numbered(2), Asker{}); f.From != Shared || !tiers[0].Has(numbered(2)) {
		t.Error("a value of a later tier is not offered to an earlier one")
	}
	if c.Has(numbered(7)) || c.Get(context.Background(), numbered(7), Asker{}).From != Nowhere {
		t.Error("a value that no tier has")
	}
	c.Offer(numbered(7), Asker{}, []byte("7"))
	c.Use(numbered(7), Asker{})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for i, tier := range tiers {
		if !tier.Has(numbered(7)) || tier.used != 1 || !tier.closed {
			t.Errorf("tier %d was not offered a value, not told of a use, or not closed", i)
		}
	}
	if !c.Fresh(context.Background(), numbered(8), []byte("8")) || Chain(tiers[1], tiers[2]).Fresh(context.Background(), numbered(9), []byte("9")) {
		t.Error("a chain wants more of an object if one of its tiers does")
	}
	if !tiers[0].Has(numbered(8)) || !tiers[2].Has(numbered(8)) {
		t.Error("a fresh value is given to some of the tiers only")
	}
	if Chain() != nil || Chain(tiers[0]) != Secondary(tiers[0]) {
		t.Error("a chain of no tier is not nil, or one of a single tier is not that tier")
	}
}
