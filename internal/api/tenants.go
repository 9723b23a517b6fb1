package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// OneTenant reads the tenant of a request. Without the header X-Scope-OrgID it is the default tenant.
func OneTenant(h http.Header) ([]string, error) {
	tenant, err := model.HeaderTenant(h.Values(model.TenantHeader))
	if err != nil {
		return nil, err
	}
	return []string{tenant}, model.CheckTenant(tenant)
}

// maxTenants bounds the tenants of one request, each of which is a query of its own.
const maxTenants = 64

// ManyTenants reads the tenants of a request, separated by | in the header X-Scope-OrgID, and returns them
// sorted and unique. Without the header it is the default tenant. As in Loki, empty names among others are
// tenants without data.
func ManyTenants(h http.Header) ([]string, error) {
	value, err := model.HeaderTenant(h.Values(model.TenantHeader))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(value, "|") + 1; n > maxTenants {
		return nil, fmt.Errorf("%w: %d tenants in X-Scope-OrgID; at most %d are allowed", model.ErrInvalid, n, maxTenants)
	}
	all := strings.Split(value, "|")
	none := strings.Trim(value, "|") == ""
	for _, t := range all {
		if t == "" && !none {
			continue
		}
		if err := model.CheckTenant(t); err != nil {
			return nil, err
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
