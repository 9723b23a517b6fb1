package pipe

import (
	"context"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

// TestHitAllocates: a hit allocates its value and nothing else.
func TestHitAllocates(t *testing.T) {
	c := dial(t, memcachetest.Start(t).Addr, Options{})
	c.must(t, set("k", make([]byte, 1000)))
	calls := []Call{get("k")}
	deadline := soon()
	alloctest.AtMost(t, 1, 200, func() {
		if err := c.Do(context.Background(), deadline, calls); err != nil || len(calls[0].Data) != 1000 {
			t.Fatal(err)
		}
	})
}
