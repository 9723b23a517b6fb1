package write

import (
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// ValidTenant returns a *Refused if the name is not a valid tenant name.
func ValidTenant(name string) error {
	if err := model.CheckTenant(name); err != nil {
		return &Refused{Status: http.StatusBadRequest, Text: strings.TrimPrefix(err.Error(), model.ErrInvalid.Error()+": ")}
	}
	return nil
}
