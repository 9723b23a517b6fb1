package retention

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	common "github.com/prometheus/common/model"

	"github.com/shaledb/shale/internal/model"
)

// Forever is the time for which rows are kept that never expire.
const Forever = time.Duration(math.MaxInt64)

// maxKeeps bounds the different times of all rules, and so the blocks of a day.
const maxKeeps = 8

// Rules say for each series how long its rows are kept. They never change, and may be used by several
// goroutines. Nil keeps everything.
type Rules struct {
	// rules begin with those of the tenants that have rules of their own, the last of which match every series.
	rules []compiled
	rest  time.Duration // of series that no rule matches
	id    string        // of the assignment of series to times; "": there are no rules
	// own has the rules of a tenant as a part of rules; the others obey those from common on.
	own    map[string][2]int
	common int
}

// Own are the rules of one tenant, which count in place of those of all.
type Own struct {
	List List
	// Rest is how long series are kept that no rule matches; 0: forever.
	Rest time.Duration
}

// Compile validates rules. Series that no rule matches are kept for rest; 0: forever. An error names the rule
// by its number, from 1.
func Compile(l List, rest time.Duration) (*Rules, error) { return CompileAll(l, rest, nil) }

// CompileAll is Compile with tenants that have rules of their own. An error names the tenant, too.
func CompileAll(l List, rest time.Duration, own map[string]Own) (*Rules, error) {
	r := &Rules{rest: keptFor(rest)}
	if len(l.Rules) == 0 && len(own) == 0 {
		return r, nil
	}
	keeps := map[time.Duration]bool{r.rest: true}
	text := sha256.New() // many tenants may have long lists
	fmt.Fprintf(text, "1 %s %s", r.rest, l.String())
	for _, tenant := range slices.Sorted(maps.Keys(own)) {
		o, first := own[tenant], len(r.rules)
		err := r.add(o.List, tenant, keeps)
		if err == nil {
			last := compiled{Rule: Rule{Tenant: escaped(tenant), Keep: Text(keptFor(o.Rest))}, keep: keptFor(o.Rest)}
			r.rules, err = append(r.rules, last), addKeep(keeps, last.keep)
		}
		if err != nil {
			return nil, fmt.Errorf("tenant %s: %w", tenant, err)
		}
		if r.own == nil {
			r.own = map[string][2]int{}
		}
		r.own[tenant] = [2]int{first, len(r.rules)}
		fmt.Fprintf(text, "\n%s %s %s", tenant, keptFor(o.Rest), o.List.String())
	}
	r.common = len(r.rules)
	if err := r.add(l, "", keeps); err != nil {
		return nil, err
	}
	// Readers trust the name of a group instead of looking at labels, so two lists must not share an id.
	r.id = hex.EncodeToString(text.Sum(nil)[:8])
	return r, nil
}

// keptFor returns the time of a setting.
func keptFor(rest time.Duration) time.Duration {
	if rest <= 0 {
		return Forever
	}
	return rest
}

// add compiles the rules of a list, those of a tenant if it is not empty.
func (r *Rules) add(l List, tenant string, keeps map[time.Duration]bool) error {
	if len(l.Rules) > maxRules {
		return fmt.Errorf("expected at most %d rules, got %d", maxRules, len(l.Rules))
	}
	for i, rule := range l.Rules {
		if tenant != "" {
			if rule.Tenant != "" {
				return fmt.Errorf("rule %d: tenant: a rule of a tenant is for that tenant; leave it out", i+1)
			}
			rule.Tenant = escaped(tenant)
		}
		c, err := rule.compile()
		if err == nil {
			err = addKeep(keeps, c.keep)
		}
		if err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
		r.rules = append(r.rules, c)
	}
	return nil
}

// escaped returns the pattern that matches one name.
func escaped(tenant string) string { return strings.ReplaceAll(tenant, "*", "\\*") }

// addKeep adds a time to those of all rules.
func addKeep(keeps map[time.Duration]bool, keep time.Duration) error {
	if keeps[keep] = true; len(keeps) > maxKeeps {
		return fmt.Errorf("keep %s is one more than the %d different times that all rules and retention may have together", Text(keep), maxKeeps)
	}
	return nil
}

// Same reports whether the rules keep every series as long as other rules do, as far as their texts tell.
func (r *Rules) Same(o *Rules) bool { return r.rest == o.rest && r.id == o.id }

// Rule returns the text of a rule by its number, from 0. The number after the last one is the rule for all
// other series.
func (r *Rules) Rule(i int) (rule Rule, ok bool) {
	switch {
	case i < len(r.rules):
		return r.rules[i].Rule, true
	case i == len(r.rules):
		return Rule{Keep: Text(r.rest)}, true
	}
	return Rule{}, false
}

// KeepOfRule returns how long the rows of the series of a rule are kept. See [Rules.Rule].
func (r *Rules) KeepOfRule(i int) time.Duration {
	if i < len(r.rules) {
		return r.rules[i].keep
	}
	return r.rest
}

// Longest returns the longest time for which any row is kept.
func (r *Rules) Longest() time.Duration {
	longest := r.rest
	for i := range r.rules {
		longest = max(longest, r.rules[i].keep)
	}
	return longest
}

// shortest returns the shortest time for which any row is kept.
func (r *Rules) shortest() time.Duration {
	shortest := r.rest
	for i := range r.rules {
		shortest = min(shortest, r.rules[i].keep)
	}
	return shortest
}

// Policy is what rules say of the series of one tenant and signal.
type Policy struct {
	rules   []numbered    // that may match, in their order
	rest    time.Duration // of series that none of them matches
	last    int           // the number of the rule that counts for these
	Least   time.Duration // the shortest time of any series
	Longest time.Duration
}

type numbered struct {
	*compiled
	number int
}

// Policy returns what the rules say of a tenant and a signal.
func (r *Rules) Policy(tenant string, s model.Signal) Policy {
	if r == nil {
		return Policy{rest: Forever, Least: Forever, Longest: Forever}
	}
	p := Policy{rest: r.rest, last: len(r.rules)}
	from, to := r.common, len(r.rules)
	if own, ok := r.own[tenant]; ok {
		from, to = own[0], own[1]
	}
	for i := from; i < to; i++ {
		c := &r.rules[i]
		if !c.mayMatch(tenant, s) {
			continue
		}
		if len(c.matchers) == 0 { // the rules after it never count
			p.rest, p.last = c.keep, i
			break
		}
		p.rules = append(p.rules, numbered{c, i})
	}
	p.Least, p.Longest = p.rest, p.rest
	for _, c := range p.rules {
		p.Least, p.Longest = min(p.Least, c.keep), max(p.Longest, c.keep)
	}
	return p
}

// Keep returns how long the rows of a series are kept.
func (p *Policy) Keep(l model.Labels) time.Duration {
	for _, c := range p.rules {
		if c.matches(l) {
			return c.keep
		}
	}
	return p.rest
}

// Rest returns how long the rows of series are kept that no rule with a selector matches.
func (p *Policy) Rest() time.Duration { return p.rest }

// Number returns the number of the rule that counts for a series. See [Rules.Rule].
func (p *Policy) Number(l model.Labels) int {
	for _, c := range p.rules {
		if c.matches(l) {
			return c.number
		}
	}
	return p.last
}

// Single returns the number of the rule that counts for all series, if one does.
func (p *Policy) Single() (number int, ok bool) { return p.last, len(p.rules) == 0 }

// Before returns the time before which rows have expired that are kept for some time.
func Before(now int64, keep time.Duration) int64 {
	if keep == Forever || now < math.MinInt64+int64(keep) {
		return math.MinInt64
	}
	return now - int64(keep)
}

// Horizon returns the time before which all rows of a tenant and a signal are hidden, and, if rows of some of
// its series are hidden earlier, what decides that.
func (r *Rules) Horizon(tenant string, s model.Signal, now int64) (oldest int64, h *model.Horizon) {
	p := r.Policy(tenant, s)
	oldest = Before(now, p.Longest)
	if p.Least == p.Longest {
		return oldest, nil
	}
	return oldest, r.horizon(p, now)
}

// horizon is apart so that requests without rules allocate nothing.
func (r *Rules) horizon(p Policy, now int64) *model.Horizon {
	times := []int64{Before(now, p.rest)}
	for _, c := range p.rules {
		if t := Before(now, c.keep); !slices.Contains(times, t) {
			times = append(times, t)
		}
	}
	return &model.Horizon{
		Times: times, Latest: Before(now, p.Least),
		Before: func(l model.Labels) int64 { return Before(now, p.Keep(l)) },
		Group: func(group string) (int64, bool) {
			keep, ok := r.KeepOf(group)
			return Before(now, keep), ok
		},
	}
}

// Keeps returns the different times for which series are kept, or nil if there are no rules.
func (r *Rules) Keeps() []time.Duration {
	if r == nil || r.id == "" {
		return nil
	}
	var all []time.Duration
	seen := map[time.Duration]bool{}
	for _, c := range append([]compiled{{keep: r.rest}}, r.rules...) {
		if !seen[c.keep] {
			seen[c.keep] = true
			all = append(all, c.keep)
		}
	}
	return all
}

// Group names the group of the series that are kept for some time, such as 30d.1f2e3d4c5b6a7980. It also
// names the rules, so that no series is in two groups of the same rules.
func (r *Rules) Group(keep time.Duration) string { return Text(keep) + "." + r.id }

// KeepOf returns how long the series of a group are kept, if these rules have made it.
func (r *Rules) KeepOf(group string) (time.Duration, bool) {
	text, id, _ := strings.Cut(group, ".")
	if r == nil || r.id == "" || id != r.id {
		return 0, false
	}
	keep, err := common.ParseDuration(text)
	if keep == 0 {
		return Forever, err == nil
	}
	return time.Duration(keep), err == nil
}

// Bounds returns the shortest and the longest time for which rows of some tenants and a signal may be kept.
// Without tenants they hold for all.
func (r *Rules) Bounds(tenants []string, s model.Signal) (least, longest time.Duration) {
	switch {
	case r == nil:
		return Forever, Forever
	case len(tenants) == 0 || len(r.rules) == 0:
		return r.shortest(), r.Longest()
	}
	least = Forever
	for _, tenant := range tenants {
		p := r.Policy(tenant, s)
		least, longest = min(least, p.Least), max(longest, p.Longest)
	}
	return least, longest
}

// Text returns a time as the rules have it; 0 is forever.
func Text(keep time.Duration) string {
	if keep == Forever {
		return "0"
	}
	return common.Duration(keep).String()
}
