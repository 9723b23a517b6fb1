package model

import (
	"fmt"
	"strings"
)

// maxTenantBytes and the alphabet of [CheckTenant] are those of Cortex, Mimir and Loki, so that their clients
// work unchanged.
const maxTenantBytes = 150

// CheckTenant returns an error of class [ErrInvalid] unless the name is allowed for a tenant.
func CheckTenant(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("%w: tenant ID %q is not allowed", ErrInvalid, name)
	case len(name) > maxTenantBytes:
		return fmt.Errorf("%w: tenant ID %.160q is longer than %d bytes", ErrInvalid, name, maxTenantBytes)
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!-_.*'()", c) >= 0 {
			continue
		}
		return fmt.Errorf("%w: tenant ID %.160q contains the character %q; letters, digits and !-_.*'() are allowed", ErrInvalid, name, c)
	}
	return nil
}
