package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTenantsCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tenants.yaml")
	check := func(text string, code int, want string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, stdout, stderr := shale(t, nil, "tenants", "check", file)
		if all := stdout + stderr; got != code || !strings.Contains(all, want) {
			t.Errorf("%q: exit code %d, want %d:\n%s", text, got, code, all)
		}
	}
	check("tenants: {a: {limits.labels: 10}, b: {query.max-series: 5}}", exitOK, file+" is valid: 2 tenants with limits of their own")
	check("tenants:\n  a:\n    limits.labels: ten\n", exitUsage, file+`:3:20: tenants.a.limits.labels: "ten" is not a whole number`)
}
