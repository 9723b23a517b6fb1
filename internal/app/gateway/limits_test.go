package gateway

import (
	"testing"

	"github.com/shaledb/shale/internal/write"
)

// TestParts: rates are divided among gateways, 0 stays no limit, and what bounds one series stays as it is.
func TestParts(t *testing.T) {
	all := &write.Limits{TenantSamples: 1000, TenantLines: 2, TenantRequests: 10, MaxLabels: 30}
	own := &parts{of: func(string) *write.Limits { return all }, n: 3}
	got := *own.limits("a")
	want := *all
	want.TenantSamples, want.TenantLines, want.TenantRequests = 333, 1, 3
	if got != want {
		t.Errorf("got %+v, expected %+v", got, want)
	}
	if again := own.limits("b"); *again != want || again != own.limits("a") {
		t.Error("the limits are divided for each request")
	}
	for range 2 * maxDivided { // limits that a reload has replaced
		all = &write.Limits{TenantSamples: 30}
		if got := own.limits("a").TenantSamples; got != 10 {
			t.Fatalf("after a reload: %d samples/s", got)
		}
	}
	if len(own.divided) > maxDivided {
		t.Errorf("%d divided limits are kept", len(own.divided))
	}
	if alone := (&parts{of: own.of, n: 1}).limits("a"); alone != all {
		t.Error("one gateway has the limits as they are")
	}
}
