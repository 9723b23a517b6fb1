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
	if err == nil {
		err = model.CheckTenant(tenant)
	}
	if err != nil {
		return nil, badTenant(err)
	}
	return []string{tenant}, nil
}

// maxTenants bounds the tenants of one request, each of which is a query of its own.
const maxTenants = 64

// ManyTenants reads the tenants of a request, separated by | in the header X-Scope-OrgID, and returns them
// sorted and unique. Without the header it is the default tenant. As in Loki, empty names among others are
// tenants without data.
func ManyTenants(h http.Header) ([]string, error) {
	value, err := model.HeaderTenant(h.Values(model.TenantHeader))
	if err != nil {
		return nil, badTenant(err)
	}
	if n := strings.Count(value, "|") + 1; n > maxTenants {
		return nil, badTenant(fmt.Errorf("%w: %d tenants in X-Scope-OrgID; at most %d are allowed", model.ErrInvalid, n, maxTenants))
	}
	all := strings.Split(value, "|")
	none := strings.Trim(value, "|") == ""
	for _, t := range all {
		if t == "" && !none {
			continue
		}
		if err := model.CheckTenant(t); err != nil {
			return nil, badTenant(err)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// badTenant says that the request is to blame, in every dialect.
func badTenant(err error) error { return &Error{Status: http.StatusBadRequest, Err: err} }
