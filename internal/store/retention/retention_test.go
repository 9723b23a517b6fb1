package retention

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

const days = 24 * time.Hour

const someRules = `
- {tenant: "team-*", signal: logs, match: '{env="dev"}', keep: 3d}
- {match: '{env="dev"}', keep: 7d}
- match: 'up{job=~"node|edge"}'
  keep: 0
- {tenant: audit, keep: 1y}
- {tenant: audit, match: '{env="prod"}', keep: 2y} # never counts
`

func compile(t *testing.T, text string, rest time.Duration) *Rules {
	t.Helper()
	var l List
	if err := l.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	r, err := Compile(l, rest)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFirstMatch: the first rule that matches a series counts.
func TestFirstMatch(t *testing.T) {
	r := compile(t, someRules, 30*days)
	for _, test := range []struct {
		tenant string
		signal model.Signal
		labels model.Labels
		want   time.Duration
		number int
	}{
		{"team-a", model.Logs, model.LabelsOf("env", "dev"), 3 * days, 0},
		{"team-a", model.Metrics, model.LabelsOf("env", "dev"), 7 * days, 1},
		{"other", model.Logs, model.LabelsOf("env", "dev"), 7 * days, 1},
		{"other", model.Logs, model.LabelsOf("env", "prod"), 30 * days, 5},
		{"other", model.Metrics, model.LabelsOf("__name__", "up", "job", "edge"), Forever, 2},
		{"other", model.Metrics, model.LabelsOf("__name__", "up", "job", "edges"), 30 * days, 5},
		{"audit", model.Metrics, model.LabelsOf("__name__", "up", "env", "dev", "job", "edge"), 7 * days, 1},
		{"audit", model.Logs, model.LabelsOf("env", "prod"), 365 * days, 3},
	} {
		p := r.Policy(test.tenant, test.signal)
		if got, n := p.Keep(test.labels), p.Number(test.labels); got != test.want || n != test.number {
			t.Errorf("%+v: %s by rule %d", test, got, n)
		}
		if keep := r.KeepOfRule(test.number); keep != test.want {
			t.Errorf("%+v: rule %d keeps %s", test, test.number, keep)
		}
		now := int64(1000 * days)
		oldest, h := r.Horizon(test.tenant, test.signal, now)
		before := Before(now, test.want)
		if h == nil || oldest > before || h.Latest < before || h.Before(test.labels) != before {
			t.Errorf("%+v: hidden before %d, %+v", test, oldest, h)
		}
	}
	if least, longest := r.Bounds([]string{"audit", "x"}, model.Logs); least != 7*days || longest != Forever {
		t.Errorf("%s to %s", least, longest)
	}
	if got := r.Longest(); got != Forever {
		t.Error(got)
	}
}

// TestNoRules: without rules all series are hidden alike.
// Rules of a tenant count in place of those of all.
func TestOwnRules(t *testing.T) {
	var own List
	if err := own.UnmarshalText([]byte(`[{match: '{env="dev"}', keep: 2h}]`)); err != nil {
		t.Fatal(err)
	}
	common := compile(t, someRules, 30*days)
	all := map[string]Own{"audit": {own, 90 * days}, "a*": {Rest: 0}}
	var list List
	if err := list.UnmarshalText([]byte(someRules)); err != nil {
		t.Fatal(err)
	}
	if _, err := CompileAll(list, 30*days, map[string]Own{"a": {Rest: time.Hour}, "b": {Rest: 2 * time.Hour}, "c": {Rest: 3 * time.Hour}, "d": {Rest: 4 * time.Hour}}); err == nil || !strings.Contains(err.Error(), "one more than") {
		t.Errorf("nine times: %v", err)
	}
	r, err := CompileAll(list, 30*days, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		tenant string
		labels model.Labels
		want   time.Duration
	}{
		{"audit", model.LabelsOf("env", "dev"), 2 * time.Hour},
		{"audit", model.LabelsOf("__name__", "up", "job", "edge"), 90 * days},
		{"a*", model.LabelsOf("env", "dev"), Forever},
		{"ab", model.LabelsOf("env", "dev"), 7 * days},
		{"ab", model.LabelsOf("env", "prod"), 30 * days},
	} {
		p := r.Policy(test.tenant, model.Metrics)
		if got := p.Keep(test.labels); got != test.want || r.KeepOfRule(p.Number(test.labels)) != test.want {
			t.Errorf("%+v: %s by rule %d", test, got, p.Number(test.labels))
		}
		if rule, ok := r.Rule(p.Number(test.labels)); !ok || rule.Keep == "" {
			t.Errorf("%+v: %s", test, rule)
		}
	}
	p := r.Policy("audit", model.Logs)
	if p.Rest() != 90*days || r.Longest() != Forever || r.Same(common) {
		t.Errorf("%s, %s", p.Rest(), r.Longest())
	}
	if again, err := CompileAll(list, 30*days, all); err != nil || !r.Same(again) || again.Group(time.Hour) != r.Group(time.Hour) {
		t.Errorf("the same rules differ: %v", err)
	}
	if of := list.Of("audit"); len(of.Rules) != 4 || of.Rules[2].Tenant != "" {
		t.Errorf("%+v", of)
	}
	if _, err := CompileAll(List{}, 0, map[string]Own{"a": {List: list}}); err == nil || !strings.Contains(err.Error(), "tenant a: rule 1: tenant:") {
		t.Errorf("a tenant in the rule of a tenant: %v", err)
	}
}

func TestNoRules(t *testing.T) {
	var none *Rules
	for _, test := range []struct {
		r    *Rules
		want int64
	}{{none, math.MinInt64}, {compile(t, "", 0), math.MinInt64}, {compile(t, "[]", 5), 95}} {
		if oldest, h := test.r.Horizon("a", model.Logs, 100); oldest != test.want || h != nil {
			t.Errorf("%d, %v", oldest, h)
		}
		if len(test.r.Keeps()) > 0 {
			t.Error("groups without rules")
		}
	}
	r := compile(t, "", days)
	if n := testing.AllocsPerRun(100, func() { r.Horizon("a", model.Logs, 100) }); n > 0 {
		t.Errorf("%v allocations without rules", n)
	}
}

// TestGroups: groups are read back by the rules that made them, and by no others.
func TestGroups(t *testing.T) {
	r, other := compile(t, someRules, 30*days), compile(t, someRules, 31*days)
	keeps := r.Keeps()
	if want := []time.Duration{30 * days, 3 * days, 7 * days, Forever, 365 * days, 730 * days}; !slices.Equal(keeps, want) {
		t.Fatal(keeps)
	}
	for _, keep := range keeps {
		group := r.Group(keep)
		if got, ok := r.KeepOf(group); !ok || got != keep {
			t.Errorf("%s: %s", group, got)
		}
		if _, ok := other.KeepOf(group); ok {
			t.Errorf("%s is known to other rules", group)
		}
	}
	for _, group := range []string{"default", "", "3d", "3d.", "x." + r.id} {
		if _, ok := r.KeepOf(group); ok {
			t.Errorf("%q is known", group)
		}
	}
}

// TestText: what a list prints is read back as the same list.
func TestText(t *testing.T) {
	r := compile(t, someRules, 0)
	var l List
	for i := range r.rules {
		l.Rules = append(l.Rules, r.rules[i].Rule)
	}
	var back List
	if err := back.UnmarshalText([]byte(l.String())); err != nil || !slices.Equal(back.Rules, l.Rules) {
		t.Fatalf("%s: %+v, %v", l, back, err)
	}
	if (List{}).String() != "" {
		t.Error("an empty list has a text")
	}
}

// TestErrors: an error names the rule and what is wrong with it.
func TestErrors(t *testing.T) {
	nine := strings.Builder{}
	for i := range 9 {
		nine.WriteString("- {keep: " + string(rune('1'+i)) + "d, match: '{a=\"b\"}'}\n")
	}
	for text, want := range map[string]string{
		"3d":                                  "expected a list of rules",
		"[3d]":                                "expected a list of rules",
		"[{keep: 3d}, {keep: soon}]":          `rule 2: keep: "soon" is not a duration`,
		"[{match: '{a=\"b\"}'}]":              `rule 1: keep: "" is not a duration`,
		"[{keep: 5m}]":                        "rule 1: keep: 5m is too short: must be at least 1h",
		"[{keep: 3d, stream: x}]":             `rule 1: unknown field "stream"`,
		"[{keep: 3d, match: {env: dev}}]":     "rule 1: match: expected one value",
		"[{keep: 3d, match: 'a b'}]":          `rule 1: match: "a b" is not a selector`,
		"[{keep: 3d, match: '{a=~\"(\"}'}]":   "rule 1: match:",
		"[{keep: 3d, signal: traces}]":        `rule 1: signal: expected metrics or logs, got "traces"`,
		"[{keep: 3d, tenant: '[a'}]":          `rule 1: tenant: "[a" is not a pattern`,
		"[{keep: 3d, tenant: }]":              "rule 1: tenant: has no value",
		nine.String():                         "rule 8: keep 8d is one more than the 8 different times",
		strings.Repeat("- {keep: 3d}\n", 257): "expected at most 256 rules, got 257",
	} {
		var l List
		if err := l.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", text, err, want)
		}
	}
}
