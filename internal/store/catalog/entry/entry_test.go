package entry

import (
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// TestSharesDay: blocks of one merge share no series, though their entries cannot tell their series apart:
// rollups are made of each. Blocks of one ship may share some, with other times of one day.
func TestSharesDay(t *testing.T) {
	const hour, day = int64(time.Hour), int64(24 * time.Hour)
	block := func(record string, level Level, group string, from, to int64) *Block {
		b := &Block{
			ID: record, Record: record, Level: level, Group: group, Range: model.TimeRange{Min: from, Max: to},
			// More tenants than an entry lists, so that their first and last names are all that is known.
			TenantCount: MaxTenants + 1, FirstTenant: "a", LastTenant: "z", KeyMax: model.KeyFrom([]byte("0123456789abcdef")),
		}
		b.Complete()
		return b
	}
	for _, x := range []struct {
		name   string
		a, b   *Block
		shares bool
	}{
		{"two merges", block("m1", Settled, "", 0, hour), block("m2", Settled, "", 2*hour, 3*hour), true},
		{"one merge", block("m1", Settled, "", 0, hour), block("m1", Settled, "", 0, hour), false},
		{"one merge before the end of the day", block("m1", Joined, "", 0, hour), block("m1", Joined, "", 0, hour), false},
		{"one ship", block("s1", Shipped, "", 0, hour), block("s1", Shipped, "", 2*hour, 3*hour), true},
		{"a ship and a merge", block("s1", Shipped, "", 0, hour), block("m1", Settled, "", 2*hour, 3*hour), true},
		{"other days", block("m1", Settled, "", 0, day-1), block("m2", Settled, "", day, day+1), false},
		{"before 1970", block("m1", Settled, "", -day, -1), block("m2", Settled, "", 0, 1), false},
		{"several days", block("m1", Settled, "", 0, 3*day), block("m2", Settled, "", day, day+1), true},
		{"groups of the same rules", block("m1", Settled, "3d.00000001", 0, hour), block("m2", Settled, "5d.00000001", 0, hour), false},
		{"groups of other rules", block("m1", Settled, "3d.00000001", 0, hour), block("m2", Settled, "5d.00000002", 0, hour), true},
	} {
		if x.a.SharesDay(x.b) != x.shares || x.b.SharesDay(x.a) != x.shares {
			t.Errorf("%s: shares a day %v and %v, want %v", x.name, x.a.SharesDay(x.b), x.b.SharesDay(x.a), x.shares)
		}
	}
}
