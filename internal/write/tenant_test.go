package write

import (
	"errors"
	"testing"
)

// A request with two tenant headers is refused, and its text names the header.
func TestTenantOfHeaders(t *testing.T) {
	for _, values := range [][]string{{"a", "b"}, {"a", "a"}} {
		_, err := Tenant(values)
		var refused *Refused
		if !errors.As(err, &refused) || refused.Status != 400 || refused.Text != "expected one header X-Scope-OrgID, got 2" {
			t.Errorf("%q: %v", values, err)
		}
	}
	for want, values := range map[string][]string{"anonymous": nil, "a": {"a"}} {
		if got, err := Tenant(values); got != want || err != nil {
			t.Errorf("%q: %q, %v", values, got, err)
		}
	}
}
