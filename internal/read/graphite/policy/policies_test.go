package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/model"
)

const schemas = `
[carbon]
pattern = ^carbon\.
retentions = 60:1440

# keys of go-carbon are left out
[web]
pattern = ^(?!db\.)web\.
retentions = 10s:6h,1min:7d,10min:5y
priority = 10
compressed = true

[all]
pattern = .*
retentions = 5m:30d,60s:1d
`

const aggregations = `
[count]
pattern = \.count$
xFilesFactor = 0
aggregationMethod = sum

[half]
pattern = \.max$
aggregationMethod = max
`

func parse(t *testing.T, schemas, aggregations string) (*Policies, error) {
	t.Helper()
	s, err := carbonconf.Parse("storage-schemas.conf", []byte(schemas))
	if err != nil {
		t.Fatal(err)
	}
	a, err := carbonconf.Parse("storage-aggregation.conf", []byte(aggregations))
	if err != nil {
		t.Fatal(err)
	}
	return Parse(s, a)
}

func TestOf(t *testing.T) {
	p, err := parse(t, schemas, aggregations)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		want Policy
	}{
		{"carbon.agents.x", Policy{[]Archive{{60, 1440}}, Average, 0.5, "carbon", ""}},
		{"web.a.count", Policy{[]Archive{{10, 2160}, {60, 10080}, {600, 262800}}, Sum, 0, "web", "count"}},
		{"db.a.max", Policy{[]Archive{{60, 1440}, {300, 8640}}, Max, 0.5, "all", "half"}},
	} {
		got, err := p.Of(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	none, err := Parse(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := none.Of("a")
	if diff := cmp.Diff(Policy{[]Archive{{60, 10080}}, Average, 0.5, "", ""}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ schemas, aggregations, want string }{
		{"[a]\nretentions=1s:1d", "", `storage-schemas.conf:1: [a]: has no pattern`},
		{"[a]\npattern=", "", `storage-schemas.conf:1: [a]: has no pattern`},
		{"[a]\npattern=x", "", `storage-schemas.conf:1: [a]: has no retentions`},
		{"[a]\npattern=(\nretentions=1s:1d", "", `storage-schemas.conf:2: [a]: pattern "(" is not a regular expression`},
		{"[a]\npattern=x\nretentions=1d", "", `:3: [a]: retentions: expected STEP:RETENTION such as 60s:1d, found "1d"`},
		{"[a]\npattern=x\nretentions=1x:1d", "", `:3: [a]: retentions: unknown unit in "1x": expected s, m, h, d, w or y`},
		{"[a]\npattern=x\nretentions=:1d", "", `:3: [a]: retentions: expected a number, or a number and a unit of s, m, h, d, w or y, found ""`},
		{"[a]\npattern=x\nretentions=0s:1d", "", `step and number of points must be positive`},
		{"[a]\npattern=x\nretentions=1d:1s", "", `step and number of points must be positive`},
		{"[a]\npattern=x\nretentions=1s:300y", "", `too long: must be at most 200 years`},
		{"[a]\npattern=x\nretentions=1y:300", "", `too long: must be at most 200 years`},
		{"[a]\npattern=x\nretentions=60s:1d,60s:2d", "", `two archives have the step 60s`},
		{"[a]\npattern=x\nretentions=60s:1d,90s:2d", "", `step 90s is not a multiple of 60s`},
		{"[a]\npattern=x\nretentions=60s:1d,120s:1d", "", `must reach back further than that of step 60s`},
		{"[a]\npattern=x\nretentions=60s:5,600s:1d", "", `the archive of step 60s has 5 points: must have at least the 10`},
		{"[a]\npattern=x\nretentions=" + strings.Repeat("1s:1,", 16) + "1s:1", "", `17 archives are too many`},
		{"", "[a]\nxFilesFactor=0.5", `storage-aggregation.conf:1: [a]: has no pattern`},
		{"", "[a]\npattern=x\nxFilesFactor=2", `storage-aggregation.conf:3: [a]: xFilesFactor: expected a number from 0 to 1, found "2"`},
		{"", "[a]\npattern=x\nxFilesFactor=nan", `xFilesFactor: expected a number from 0 to 1`},
		{"", "[a]\npattern=x\naggregationMethod=p50", `aggregationMethod: unknown method "p50": expected average, sum`},
	} {
		if _, err := parse(t, c.schemas, c.aggregations); err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%q %q: got error %v, want %s", c.schemas, c.aggregations, err, c.want)
		}
	}
}

func TestFilesAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "storage-schemas.conf")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("[a]\npattern=x\nretentions=1s:1d")
	f, err := Open(Limits{Schemas: path})
	if err != nil {
		t.Fatal(err)
	}
	step := func() int64 {
		p, err := f.Policies().Of("x")
		if err != nil {
			t.Fatal(err)
		}
		return p.Archives[0].Step
	}
	write("[a]\npattern=x\nretentions=10s:1d")
	if err := f.load(); err != nil || step() != 10 {
		t.Errorf("step %d, error %v", step(), err)
	}
	write("[a]\npattern=x\n")
	if err := f.load(); err == nil || step() != 10 {
		t.Errorf("a broken file: step %d, error %v", step(), err)
	}
	if _, err := Open(Limits{Aggregations: path + "x"}); err == nil || !errors.Is(err, model.ErrInvalid) {
		t.Error("a missing file is no error: ", err)
	}
}

// TestWarnings: what of the files has no effect is said.
func TestWarnings(t *testing.T) {
	for _, c := range []struct{ schemas, aggregations, want string }{
		{"[a]\npattern = ^a\nretentions = 60s:1d,1h:3y\n[b]\npattern = .*\nretentions = 60s:1d\n", "[s]\npattern = sum$\n", ""},
		{"[a]\npattern = ^a\nretentions = 60s:1d\n[b]\npattern = ^a\nretentions = 60s:2d\n", "", "section b never applies: section a before"},
		{"[a]\npattern = .*\nretentions = 60s:1d\n[b]\npattern = ^b\nretentions = 60s:2d\n", "", "section b never applies: section a before"},
		{"", "[all]\npattern = ^.*$\n[s]\npattern = sum$\n", "storage-aggregation: section s never applies"},
		{"[a]\npattern = ^a\nretentions = 60s:1d,7m:3y\n", "", "the archive of 420 s has no rollups"},
		{"[a]\npattern = ^a\nretentions = 1s:1m,2s:1h,4s:2h,8s:3h,16s:4h,32s:5h,64s:6h,128s:7h\n[b]\npattern = ^b\nretentions = 3s:1m,6s:1h,12s:2h,24s:3h,48s:4h,96s:5h\n" +
			"[c]\npattern = ^c\nretentions = 5s:1m,10s:1h,20s:2h,40s:3h,80s:4h,160s:5h\n", "", "different steps"},
	} {
		s, err := carbonconf.Parse("schemas", []byte(c.schemas))
		if err != nil {
			t.Fatal(err)
		}
		a, err := carbonconf.Parse("aggregations", []byte(c.aggregations))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(s, a)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Warnings(), "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q, %q: warnings %q, want %q", c.schemas, c.aggregations, got, c.want)
		}
	}
}
