package model

import (
	"fmt"
	"strings"
	"unicode/utf8"
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
	for i, c := range name {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("!-_.*'()", c) {
			continue
		}
		found := fmt.Sprintf("character %q", c)
		if c == utf8.RuneError && !strings.HasPrefix(name[i:], string(utf8.RuneError)) {
			found = fmt.Sprintf("byte %#x, which is not UTF-8", name[i])
		}
		return fmt.Errorf("%w: tenant ID %.160q contains the %s; letters, digits and !-_.*'() are allowed", ErrInvalid, name, found)
	}
	return nil
}

// TenantHeader is the HTTP header that names the tenant of a request.
const TenantHeader = "X-Scope-OrgID"

// HeaderTenant returns the name in the values of [TenantHeader], and the default tenant if there is none. It
// does not check the name. Several values are an error of class [ErrInvalid]: proxies and servers would not
// agree on the one that counts.
func HeaderTenant(values []string) (string, error) {
	switch {
	case len(values) > 1:
		return "", fmt.Errorf("%w: expected one header %s, got %d", ErrInvalid, TenantHeader, len(values))
	case len(values) == 0 || values[0] == "":
		return DefaultTenant, nil
	}
	return values[0], nil
}
