package loki

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// maxTenants bounds the tenants of one request, each of which is a selection of its own.
const maxTenants = 64

// errManyTenants refuses several tenants where one is wanted, in Loki's words.
var errManyTenants = errors.New("multiple org IDs present")

// tenants reads the header X-Scope-OrgID: one tenant, or several with | between them, which come back sorted, each once.
// Without the header it is the default tenant.
func tenants(h http.Header) ([]string, error) {
	value := h.Get("X-Scope-OrgID")
	if value == "" {
		return []string{model.DefaultTenant}, nil
	}
	if n := strings.Count(value, "|") + 1; n > maxTenants {
		return nil, fmt.Errorf("%w: %d tenants in X-Scope-OrgID; at most %d are allowed", model.ErrInvalid, n, maxTenants)
	}
	all := strings.Split(value, "|")
	for _, t := range all {
		if err := model.CheckTenant(t); err != nil {
			return nil, err
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
