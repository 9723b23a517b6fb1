package read

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// TestLeastStrings compares with a map, for any order of strings, and checks the charge that stays.
func TestLeastStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := leastStrings{limit: rapid.SampledFrom([]int{0, 1, 3, 100, 500, 3000}).Draw(t, "limit"), quota: new(model.Quota)}
		pool := &model.QueryPool{MaxBytes: 1 << 40}
		s.quota.Pool = pool
		want := map[string]bool{}
		for range rapid.IntRange(0, 6).Draw(t, "sources") {
			from, n := rapid.IntRange(0, 2000).Draw(t, "from"), rapid.SampledFrom([]int{0, 1, 10, 300, 2000}).Draw(t, "strings")
			stride := rapid.SampledFrom([]int{1, 3, 17, -1, 7919}).Draw(t, "stride")
			for i := range n {
				v := fmt.Sprintf("%05d", (from+100_000+i*stride)%100_000)
				want[v] = true
				if err := s.add([]byte(v)); err != nil {
					t.Fatal(err)
				}
			}
		}
		sorted := slices.Sorted(maps.Keys(want))
		more := s.limit > 0 && len(sorted) > s.limit
		if more {
			sorted = sorted[:s.limit]
		}
		got, gotMore, err := s.finish()
		if err != nil || gotMore != more || !slices.Equal(got, sorted) {
			t.Fatalf("%d strings, more: %v, %v; want %d, %v", len(got), gotMore, err, len(sorted), more)
		}
		bytes := int64(0)
		for _, v := range got {
			bytes += int64(len(v)) + stringBytes
		}
		if pool.Used() != bytes {
			t.Fatalf("%d bytes are charged for %d", pool.Used(), bytes)
		}
	})
}

// TestLeastStringsAllocate: values in order cost no allocation each.
func TestLeastStringsAllocate(t *testing.T) {
	const n = 100_000
	values := make([][]byte, n)
	for i := range values {
		values[i] = fmt.Appendf(nil, "value-%06d", i)
	}
	alloctest.AtMost(t, 150, 2, func() {
		s := leastStrings{quota: new(model.Quota)}
		for range 2 { // as from two sources
			for _, v := range values {
				if err := s.add(v); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, _, err := s.finish(); err != nil || len(got) != n {
			t.Fatalf("%d values, %v", len(got), err)
		}
	})
}

// TestLeastStringsHoldTheLimit: memory stays bounded by the limit, although a later source emits many
// values in order that are less than all values of an earlier one.
func TestLeastStringsHoldTheLimit(t *testing.T) {
	const limit = 300
	s := leastStrings{limit: limit, quota: new(model.Quota)}
	for _, first := range []string{"z", "y", "a"} {
		for i := range 50_000 {
			if err := s.add(fmt.Appendf(nil, "%s%06d", first, i)); err != nil {
				t.Fatal(err)
			}
			held := s.current.len()
			for i := range s.closed {
				held += s.closed[i].len()
			}
			if held > 3*limit {
				t.Fatalf("%s%d: %d strings are held", first, i, held)
			}
		}
	}
	if got, more, err := s.finish(); err != nil || !more || len(got) != limit || got[limit-1] != "a000299" {
		t.Fatal(len(got), more, err)
	}
}
