package gateway

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// TestCreation: each gateway grants its part of a rate, with a burst of a minute's worth, and the limit that
// refuses is named. What is kept of tenants is bounded.
func TestCreation(t *testing.T) {
	c := &creation{rates: Rates{All: 10, Of: func(tenant string) int64 { return map[string]int64{"a": 4}[tenant] }}, gateways: 2, tenants: map[string]*spent{}}
	now := time.Unix(1000, 0)
	take := func(tenant string, n, want int, limit string) {
		t.Helper()
		allowed, err := c.take(tenant, n, now)
		var named *model.LimitError
		if allowed != want || errors.As(err, &named) != (limit != "") || named != nil && (named.Limit != limit || named.Tenant != (limit == "limits.tenant-new-series")) {
			t.Errorf("%s: %d of %d, %v", tenant, allowed, n, err)
		}
	}
	take("a", 100, 100, "")
	take("a", 100, 20, "limits.tenant-new-series") // 4 a second, for a minute, half of it
	take("b", 300, 180, "limits.new-series")
	take("b", 0, 0, "")
	now = now.Add(10 * time.Second)
	take("a", 50, 20, "limits.tenant-new-series")
	take("b", 50, 30, "limits.new-series")
	now = now.Add(time.Hour)
	take("a", 120, 120, "")
	c.rates = Rates{Of: func(string) int64 { return 1 }}
	for i := range maxSpent + 10 {
		take(fmt.Sprint(i), 1, 1, "")
	}
	if len(c.tenants) > maxSpent {
		t.Errorf("%d tenants are kept", len(c.tenants))
	}
	take("one that is new", 31, 30, "limits.tenant-new-series")
	c.rates = Rates{}
	take("a", 1_000_000, 1_000_000, "")
}
