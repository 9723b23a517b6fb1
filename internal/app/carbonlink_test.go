package app

import (
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// TestCarbonlinkSharesAsTheDefaultTenant: requests for recent points count as queries of the default tenant,
// and their bytes on the way do not count as memory of queries.
func TestCarbonlinkSharesAsTheDefaultTenant(t *testing.T) {
	pool := &model.QueryPool{MaxBytes: 64 << 20, Shared: func() bool { return true }}
	f := freshPoints{pool: pool, forms: &model.QueryPool{MaxBytes: 64 << 20}}
	way := f.transit()
	defer way.Release()
	if err := way.TakeBytes(40 << 20); err != nil {
		t.Error(err)
	}
	query := &model.Quota{Tenant: model.DefaultTenant, Pool: pool}
	defer query.Release()
	if err := query.TakeBytes(30 << 20); err != nil {
		t.Fatal(err)
	}
	request := f.quota()
	defer request.Release()
	if err := request.TakeBytes(20 << 20); err == nil { // together more than the share of a tenant
		t.Error("a request takes memory beyond the share of the default tenant")
	}
	other := &model.Quota{Tenant: "other", Pool: pool}
	defer other.Release()
	if err := other.TakeBytes(20 << 20); err != nil {
		t.Error(err)
	}
}
