package api

import (
	"net/http"
	"strings"
	"testing"
)

func TestManyTenants(t *testing.T) {
	for header, want := range map[string]string{
		"":        "anonymous",
		"a":       "a",
		"b|a|b":   "a b",
		"a.b|!*'": "!*' a.b",
		"a|":      " a",
		"b||a|":   " a b",
	} {
		got, err := ManyTenants(http.Header{"X-Scope-Orgid": {header}})
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v; want %s", header, got, err, want)
		}
	}
	for _, header := range []string{"|", "||", "..", "|..", "a|.", "a b", "a/b", strings.Repeat("x", 151), strings.Repeat("x|", 100) + "x"} {
		if got, err := ManyTenants(http.Header{"X-Scope-Orgid": {header}}); err == nil {
			t.Errorf("%.20q: %v", header, got)
		}
	}
}

func TestOneTenant(t *testing.T) {
	for header, want := range map[string]string{"": "anonymous", "a.b": "a.b"} {
		got, err := OneTenant(http.Header{"X-Scope-Orgid": {header}})
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%q: %v, %v; want %s", header, got, err, want)
		}
	}
	for _, header := range []string{"a|b", "..", "a/b"} {
		if got, err := OneTenant(http.Header{"X-Scope-Orgid": {header}}); err == nil {
			t.Errorf("%q: %v", header, got)
		}
	}
}

// Two headers are refused, whichever of them a proxy or another server would take.
func TestTwoTenantHeaders(t *testing.T) {
	for _, values := range [][]string{{"a", "b"}, {"a", "a"}, {"", "a"}} {
		h := http.Header{"X-Scope-Orgid": values}
		for name, read := range map[string]func(http.Header) ([]string, error){"OneTenant": OneTenant, "ManyTenants": ManyTenants} {
			got, err := read(h)
			if want := "invalid: expected one header X-Scope-OrgID, got 2"; err == nil || err.Error() != want {
				t.Errorf("%s of %q: %v, %v; want %s", name, values, got, err, want)
			}
		}
	}
}
