package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// A section of a tenant overrides the defaults of the file, which override the settings.
func TestTenants(t *testing.T) {
	c := Default()
	c.MemoryBytes = 1 << 30
	c.Write.MaxInflightBytes = 77
	read, err := ParseTenants("tenants.yaml", []byte(`
defaults:
  limits: {tenant-samples: 1000, tenant-series: 500}
  query.max-series: 10
tenants:
  team-a:
    limits.tenant-samples: 5000
    limits: {labels: 5, line-bytes: 2KiB}
    query: {timeout: 3s, max-bytes: 50%, tenant-bucket-bytes: 1GiB}
    max-age: 90d
    retention: 60d
    retention-rules: [{match: '{env="dev"}', keep: 3d}]
  team-b:
`), &c)
	if err != nil {
		t.Fatal(err)
	}
	a, b, other := read.Of("team-a"), read.Of("team-b"), read.Of("who")
	if a.Write.TenantSamples != 5000 || a.Head.Series != 500 || a.Write.MaxLabels != 5 || a.Lines.MaxLabels != 5 || a.Lines.MaxLineBytes != 2048 ||
		a.Query.Timeout != 3*time.Second || a.Query.MaxBytes != 1<<29 || a.Query.MaxSeries != 10 || a.Bill.TenantBytes != 1<<30 || a.Write.MaxInflightBytes != 77 {
		t.Errorf("team-a: %+v", a)
	}
	p, rest := read.Retention().Policy("team-a", model.Logs), read.Retention().Policy("who", model.Logs)
	if p.Keep(model.LabelsOf("env", "dev")) != 3*day || p.Rest() != 60*day || rest.Rest() != 30*day {
		t.Errorf("lines are kept for %s, and for %s", p.Rest(), rest.Rest())
	}
	// The shorter of max-age and retention counts.
	if a.Write.MaxAge != 60*day || a.Write.AgeSetting != "retention" || other.Write.MaxAge != 7*day || other.Write.AgeSetting != "" {
		t.Errorf("ages: %s of %s, %s of %s", a.Write.MaxAge, a.Write.AgeSetting, other.Write.MaxAge, other.Write.AgeSetting)
	}
	if b.Write != other.Write || b.Head != other.Head || read.Len() != 2 || other.Write.TenantSamples != 1000 || other.Write.MaxLabels != 64 {
		t.Errorf("team-b: %+v, others: %+v", b, other)
	}
	if empty, err := ParseTenants("x", []byte("defaults: {}"), &c); err != nil || empty.Of("a").Write.TenantSamples != c.Write.TenantSamples {
		t.Errorf("a file without limits: %v", err)
	}
}

// TestShorter: what is kept for a shorter time than before is named.
func TestShorter(t *testing.T) {
	c := Default()
	parse := func(text string) *Tenants {
		all, err := ParseTenants("f", []byte(text), &c)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := parse("tenants: {a: {retention: 5y}, b: {retention: 2d}, c: {retention-rules: [{signal: logs, keep: 9d}]}, gone: {retention: 0}}")
	now := parse("tenants: {a: {retention: 5d}, b: {retention: 3d}, c: {retention-rules: [{signal: logs, keep: 8d}]}}")
	want := []string{"metrics of a: 5d, before 5y", "logs of a: 5d, before 5y", "logs of c: 8d, before 9d", "metrics of gone: 30d, before 0", "logs of gone: 30d, before 0"}
	if got := now.Shorter(before, 10); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := now.Shorter(before, 1); len(got) != 1 {
		t.Errorf("got %q, want one", got)
	}
	if got := now.Shorter(now, 10); len(got) != 0 {
		t.Errorf("nothing changed: %q", got)
	}
}

// Each mistake has its line and its field, and all are reported at once.
func TestBadTenants(t *testing.T) {
	c := Default()
	for text, want := range map[string]string{
		"\n":                                  "f is empty: expected defaults or tenants",
		"tenants: {a: {limits.labels: many}}": `f:1:30: tenants.a.limits.labels: "many" is not a whole number`,
		"tenants:\n  a:\n    limits: {labels: 0}":                         "f:3:22: tenants.a.limits.labels: 0 is out of range: must be between 1 and 1024",
		"defaults: {limits.decoded-bytes: 1KiB}":                          "f:1:34: defaults.limits.decoded-bytes: 1KiB is too small: must be at least limits.body-bytes, which is 32MiB",
		"tenants: {a: {retention-rules: [{tenant: b, keep: 3d}]}}":        "f: retention and retention-rules: tenant a: rule 1: tenant: a rule of a tenant is for that tenant; leave it out",
		"tenants: {a: {retention: 5s}}":                                   "f:1:11: retention: 5s is too short: must be at least 1h, or 0 to keep rows without end",
		"defaults: {retention: 5m}":                                       "retention: 5m is too short: must be at least 1h",
		"tenants: {a: {memory: 1GiB}}":                                    "f:1:15: tenants.a.memory: is a setting of the server, which no tenant can have of its own",
		"tenants: {a: {limits.tenant-serie: 1}}":                          "f:1:15: unknown setting limits.tenant-serie; did you mean limits.tenant-series?",
		"tenants: {a/b: {}}":                                              `f:1:11: invalid: tenant ID "a/b" contains the character '/'; letters, digits and !-_.*'() are allowed`,
		"tenants: [a]":                                                    "f:1:10: tenants must be a map",
		"tenant: {a: {}}":                                                 "f:1:1: unknown section tenant: expected defaults or tenants",
		"tenants: {a: 5}":                                                 "f:1:14: tenants.a must hold settings, as `name: value`",
		"a: [":                                                            "f:1:4: sequence end token ']' not found",
		"tenants: {a: {query.max-bytes: 0, limits.tenant-burst: 2h}}":     "f:1:56: tenants.a.limits.tenant-burst: 2h is out of range: must be between 1s and 1h\nf:1:32: tenants.a.query.max-bytes: must not be 0",
		"tenants: {a: {limits.labels: x}, b: {limits.tenant-samples: y}}": `f:1:61: tenants.b.limits.tenant-samples: "y" is not a whole number`,
	} {
		_, err := ParseTenants("f", []byte(text), &c)
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// The documentation lists the settings that a tenant may have of its own.
func TestTenantSettingsAreListed(t *testing.T) {
	text, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(text), "A tenant may have its own:\n\n```\n")
	list, _, ok2 := strings.Cut(list, "\n```\n")
	if !ok || !ok2 {
		t.Fatal("docs/limits.md has no list of settings")
	}
	want := strings.Join(TenantSettings(), " ")
	if got := strings.Join(strings.Fields(list), " "); got != want {
		t.Errorf("docs/limits.md lists\n%s\nwant\n%s", got, want)
	}
}

// A file of many tenants is read in the time that its size takes.
func TestManyTenants(t *testing.T) {
	var text strings.Builder
	text.WriteString("tenants:\n")
	for i := range 2000 {
		fmt.Fprintf(&text, "  t%d: {limits.tenant-samples: %d}\n", i, i)
	}
	c := Default()
	read, err := ParseTenants("f", []byte(text.String()), &c)
	if err != nil || read.Len() != 2000 || read.Of("t1999").Write.TenantSamples != 1999 {
		t.Errorf("%v", err)
	}
}
