package retention

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	common "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/deletion"
)

// Rule says how long the rows of the series that it matches are kept. All fields are texts, as in the file.
type Rule struct {
	// Tenant is a pattern as in path.Match. Empty: every tenant.
	Tenant string `json:"tenant,omitempty"`
	// Signal is "metrics" or "logs". Empty: both.
	Signal string `json:"signal,omitempty"`
	// Match is a selector such as {app="web"}. Empty: every series.
	Match string `json:"match,omitempty"`
	// Keep is a duration such as 30d. 0: forever.
	Keep string `json:"keep"`
}

// List is the setting: the first rule that matches a series counts. Its text is a YAML or JSON list of rules.
type List struct{ Rules []Rule }

// maxRules bounds the rules, since each may be evaluated for each series of a query.
const maxRules = 256

// UnmarshalText parses and validates a list. An error names the rule by its number, from 1.
func (l *List) UnmarshalText(text []byte) error {
	l.Rules = nil
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	var all []map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("expected a list of rules such as [{match: '{env=\"dev\"}', keep: 3d}]: %s", yaml.FormatError(err, false, false))
	}
	for i, fields := range all {
		r, err := ruleOf(fields)
		if err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
		l.Rules = append(l.Rules, r)
	}
	_, err := Compile(*l, 0)
	return err
}

// Of returns the rules that may match series of a tenant, as rules of its own.
func (l List) Of(tenant string) (own List) {
	for _, r := range l.Rules {
		if found, _ := path.Match(r.Tenant, tenant); !found && r.Tenant != "" {
			continue
		}
		r.Tenant = ""
		own.Rules = append(own.Rules, r)
	}
	return own
}

// ruleOf reads a rule from its fields.
func ruleOf(fields map[string]any) (r Rule, err error) {
	into := map[string]*string{"tenant": &r.Tenant, "signal": &r.Signal, "match": &r.Match, "keep": &r.Keep}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		to := into[name]
		if to == nil {
			return r, fmt.Errorf("unknown field %q: expected tenant, signal, match or keep", name)
		}
		switch v := fields[name].(type) {
		case map[string]any, []any:
			return r, fmt.Errorf("%s: expected one value, got a list or a map; quote a selector, as in '{app=\"web\"}'", name)
		case nil:
			return r, fmt.Errorf("%s: has no value", name)
		default:
			*to = fmt.Sprint(v)
		}
	}
	return r, nil
}

// String returns the list in the form that UnmarshalText reads.
func (l List) String() string {
	if len(l.Rules) == 0 {
		return ""
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(l.Rules); err != nil {
		panic("BUG: texts have a form in JSON: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// IsList says that the value of the setting is a list.
func (List) IsList() {}

// compiled is a rule that can be evaluated.
type compiled struct {
	Rule
	signal   model.Signal // 0: both
	keep     time.Duration
	names    []string
	matchers []func(string) bool
}

func (r Rule) compile() (c compiled, err error) {
	c.Rule = r
	if _, err := path.Match(r.Tenant, ""); err != nil {
		return c, fmt.Errorf("tenant: %q is not a pattern such as team-*", r.Tenant)
	}
	for _, s := range []model.Signal{model.Metrics, model.Logs} {
		if r.Signal == s.String() {
			c.signal = s
		}
	}
	if r.Signal != "" && c.signal == 0 {
		return c, fmt.Errorf("signal: expected metrics or logs, got %q", r.Signal)
	}
	if c.keep, err = parseKeep(r.Keep); err != nil {
		return c, fmt.Errorf("keep: %w", err)
	}
	if r.Match == "" {
		return c, nil
	}
	ms, err := parser.NewParser(parser.Options{}).ParseMetricSelector(r.Match)
	if err != nil {
		return c, fmt.Errorf("match: %q is not a selector such as {app=\"web\"}: %w", r.Match, err)
	}
	for _, m := range ms {
		match, err := deletion.Matcher{Name: m.Name, Op: model.MatchOp(m.Type), Value: m.Value}.Compile()
		if err != nil {
			return c, fmt.Errorf("match: %w", err)
		}
		c.names, c.matchers = append(c.names, m.Name), append(c.matchers, match)
	}
	return c, nil
}

// leastKeep bounds the times of rules: younger rows are still being written, and labels of series that have
// just ended are listed for some hours.
const leastKeep = time.Hour

// CheckRest checks how long a tenant keeps series that no rule matches; 0 means forever.
func CheckRest(rest time.Duration) error {
	if rest > 0 && rest < leastKeep {
		return fmt.Errorf("%s is too short: must be at least 1h, or 0 to keep rows without end", common.Duration(rest))
	}
	return nil
}

func parseKeep(text string) (time.Duration, error) {
	d, err := common.ParseDuration(text)
	switch keep := time.Duration(d); {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration; write one such as 30d or 12h, or 0 to keep rows without end", text)
	case keep == 0:
		return Forever, nil
	case keep < leastKeep:
		return 0, fmt.Errorf("%s is too short: must be at least 1h, or 0 to keep rows without end", text)
	default:
		return keep, nil
	}
}

// matches reports whether the labels satisfy the selector.
func (c *compiled) matches(l model.Labels) bool {
	for i, match := range c.matchers {
		if !match(string(l.Get(c.names[i]))) {
			return false
		}
	}
	return true
}

// mayMatch reports whether the rule may match series of a tenant and a signal.
func (c *compiled) mayMatch(tenant string, s model.Signal) bool {
	if c.signal != 0 && c.signal != s {
		return false
	}
	found, _ := path.Match(c.Tenant, tenant) // compile has checked the pattern
	return found || c.Tenant == ""
}

// String describes a rule for people.
func (r Rule) String() string {
	return fmt.Sprintf("tenant %s, %s, %s, keep %s", cmp.Or(r.Tenant, "*"), cmp.Or(r.Signal, "metrics and logs"), cmp.Or(r.Match, "{}"), r.Keep)
}
