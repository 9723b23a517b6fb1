package ingester

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/journal/state"
)

// TestRecord: however many tenants there are, a record of theirs has room in the topic, is the same each
// time, and has the tenants with most series and the smallest filters.
func TestRecord(t *testing.T) {
	limited := func(string) (int64, bool) { return 1, false }
	for _, c := range []struct {
		name    string
		tenants int
		series  func(i int) int64
		more    bool
		filters []int // of which tenants; nil: of any
	}{
		{"few", 3, func(i int) int64 { return int64(i) + 1 }, false, []int{0, 1, 2}},
		{"long names", 9000, func(i int) int64 { return int64(i) + 1 }, true, nil},
		{"many", 20_000, func(i int) int64 { return int64(i) + 1 }, true, nil},
		{"large filters", 8, func(i int) int64 { return 100_000 + int64(i) }, false, []int{0, 1}},
		{"a small one among large ones", 8, func(i int) int64 { return []int64{120_000, 10}[i/7] }, false, []int{5, 6, 7}},
		{"too large for a filter", 2, func(i int) int64 { return []int64{10, 131_073}[i] }, false, []int{0}},
	} {
		active := map[string]int64{}
		name := func(i int) string { return fmt.Sprintf("tenant-%05d", i) }
		if c.name == "long names" {
			name = func(i int) string { return fmt.Sprintf("tenant-%05d", i) + strings.Repeat("x", 138) }
		}
		for i := range c.tenants {
			active[name(i)] = c.series(i)
		}
		r, unlisted := record(active, state.Partition{Epoch: 1}, 1, limited)
		key, value := r.Encode()
		if _, err := state.Decode(key, value); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if r.More != c.more {
			t.Errorf("%s: more is %t", c.name, r.More)
		}
		if _, largest := r.Active[name(c.tenants-1)]; c.more && !largest {
			t.Errorf("%s: the tenant with most series is not counted", c.name)
		}
		if c.filters != nil {
			var want []string
			for _, i := range c.filters {
				want = append(want, name(i))
			}
			if have := slices.Sorted(maps.Keys(r.Known)); !slices.Equal(have, want) {
				t.Errorf("%s: the filters are of %v", c.name, have)
			}
			if len(unlisted) != c.tenants-len(c.filters) {
				t.Errorf("%s: %d tenants are not listed", c.name, len(unlisted))
			}
		}
		for range 3 {
			again, _ := record(active, state.Partition{Epoch: 1}, 1, limited)
			if _, again := again.Encode(); !bytes.Equal(again, value) {
				t.Errorf("%s: two records differ", c.name)
			}
		}
	}
}
