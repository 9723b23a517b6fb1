package app

import (
	"testing"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/store/known"
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

// TestKnownShare: 11 GiB hold 200 million active series, as docs/scale.md says.
func TestKnownShare(t *testing.T) {
	set, err := known.New(splitMemory(11 << 30).known)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if set.Cap() < 200_000_000 {
		t.Errorf("11 GiB hold %d series", set.Cap())
	}
}

// TestRoleShares: a role gets shares that others leave, and none for what it does not do. Roles of one
// process divide what both need.
func TestRoleShares(t *testing.T) {
	for _, role := range []string{
		config.RoleGateway, config.RoleIngest, config.RoleQuery, config.RoleCompact, "gateway,query", "gateway,ingest", "ingest,query", "ingest,compact",
		"gateway,ingest,query,compact",
	} {
		c := config.Config{Role: role, MemoryBytes: 4 << 30}
		b, all := memoryOf(&c), splitMemory(c.MemoryBytes)
		users := func(roles ...string) (n int64) {
			for _, r := range roles {
				if c.Has(r) {
					n++
				}
			}
			return n
		}
		writers, readers := users(config.RoleGateway, config.RoleIngest), users(config.RoleIngest, config.RoleQuery)
		taken := writers*(b.known+b.journal) + readers*(b.pages+b.queries) + users(config.RoleIngest)*(b.rows+b.labels) +
			users(config.RoleQuery)*b.answers + users(config.RoleCompact)*b.compaction
		whole := all.known + all.rows + all.labels + all.journal + all.pages + all.queries + all.answers + all.patterns + all.compaction
		if taken > whole {
			t.Errorf("%s: the roles take %d bytes, more than the %d of the role all", role, taken, whole)
		}
		if outside := outsideHeap(&c); outside != writers*b.known {
			t.Errorf("%s: %d bytes are outside the heap, expected %d", role, outside, writers*b.known)
		}
		if (writers > 0) != (b.known > 0) || (writers > 0) != (b.journal > 0) || (readers > 0) != (b.pages > 0) {
			t.Errorf("%s: %+v", role, b)
		}
		if role == config.RoleCompact && b.compaction < min(5*all.compaction, greatestCompaction) {
			t.Errorf("%s: %d bytes for merges, and %d of the role all", role, b.compaction, all.compaction)
		}
		if role == config.RoleGateway && b.known <= all.known || role == config.RoleQuery && b.pages <= all.pages {
			t.Errorf("%s: %+v", role, b)
		}
	}
}
