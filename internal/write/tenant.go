package write

import (
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// ValidTenant returns a *Refused if the name is not a valid tenant name.
func ValidTenant(name string) error {
	if err := model.CheckTenant(name); err != nil {
		return badTenant(err)
	}
	return nil
}

// Tenant returns the tenant that the values of [model.TenantHeader] name, or a *Refused.
func Tenant(values []string) (string, error) {
	name, err := model.HeaderTenant(values)
	if err != nil {
		return "", badTenant(err)
	}
	return name, ValidTenant(name)
}

func badTenant(err error) error {
	return &Refused{Status: http.StatusBadRequest, Text: strings.TrimPrefix(err.Error(), model.ErrInvalid.Error()+": ")}
}
