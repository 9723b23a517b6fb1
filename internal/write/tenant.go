package write

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// maxTenantBytes and the alphabet below are those of Cortex, Mimir and Loki, whose clients are to work unchanged.
const maxTenantBytes = 150

// ValidTenant returns a *Refused unless the name may name a tenant.
func ValidTenant(name string) error {
	if name == model.DefaultTenant {
		return nil
	}
	bad := func(why string) error {
		return &Refused{Status: http.StatusBadRequest, Text: fmt.Sprintf("tenant ID %.160q %s", name, why)}
	}
	switch {
	case name == "" || name == "." || name == "..":
		return bad("is not allowed")
	case len(name) > maxTenantBytes:
		return bad(fmt.Sprintf("is longer than %d bytes", maxTenantBytes))
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!-_.*'()", c) >= 0 {
			continue
		}
		return bad(fmt.Sprintf("contains the character %q; letters, digits and !-_.*'() are allowed", c))
	}
	return nil
}
