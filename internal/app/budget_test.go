package app

import (
	"testing"

	"github.com/shaledb/shale/internal/config"
)

// TestSharesAddUp: all shares at their limits at the same time stay inside 1.15 of the budget and 4 MiB, and
// the largest query that the settings allow fits the share of queries.
func TestSharesAddUp(t *testing.T) {
	for _, total := range []int64{64 << 20, 128 << 20, 256 << 20, 1 << 30, 64 << 30} {
		c := config.Default()
		if err := c.Memory.UnmarshalText([]byte(config.Size(total).String())); err != nil {
			t.Fatal(err)
		}
		if err := c.Resolve(config.Machine{MemoryBytes: 2 * total, DiskBytes: 1 << 40}); err != nil {
			t.Fatal(err)
		}
		b := splitMemory(c.MemoryBytes)
		most := b.known + b.journal + b.pages + b.answers + b.queries + b.forms + b.patterns + b.ledger + c.Write.MaxInflightBytes +
			2*b.rows + // sorted into a copy
			b.labels + b.labels/4*3 + // three quarters are flushed at a time, and sorted into a copy of their headers
			2*b.compaction // blocks that are read and written
		if bound := total*115/100 + 4<<20; most > bound {
			t.Errorf("a budget of %s: the shares take %s, more than %s", config.Size(total), config.Size(most), config.Size(bound))
		}
		if heavy := b.queries / 8 * 7; c.Query.MaxBytes > heavy {
			t.Errorf("a budget of %s: one query may have %d bytes, and queries that are not light have %d", config.Size(total), c.Query.MaxBytes, heavy)
		}
	}
}

// TestRoleShares: a role gets shares that others leave, and none for what it does not do.
func TestRoleShares(t *testing.T) {
	for _, role := range []string{config.RoleGateway, config.RoleIngest, config.RoleQuery, config.RoleCompact, "gateway,query"} {
		c := config.Config{Role: role, MemoryBytes: 4 << 30}
		b, all := memoryOf(&c), splitMemory(c.MemoryBytes)
		sum := func(b budget) int64 {
			return b.known + b.rows + b.labels + b.journal + b.pages + b.queries + b.answers + b.patterns + b.compaction
		}
		if sum(b) > sum(all) {
			t.Errorf("%s: the shares are %d bytes, more than the %d of the role all", role, sum(b), sum(all))
		}
		if c.Has(config.RoleGateway) != (b.known > 0 && b.journal > 0) && role != config.RoleIngest {
			t.Errorf("%s: %+v", role, b)
		}
		if role == config.RoleGateway && (b.known <= all.known || b.pages != 0) || role == config.RoleQuery && (b.pages <= all.pages || b.rows != 0) {
			t.Errorf("%s: %+v", role, b)
		}
	}
}
