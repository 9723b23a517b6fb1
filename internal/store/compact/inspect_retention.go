package compact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
	"github.com/shaledb/shale/internal/store/retention"
)

// RetentionOptions configure [InspectRetention].
type RetentionOptions struct {
	Rules *retention.Rules
	// Tenant is the one to look at; "": all.
	Tenant string
	JSON   bool
	// Now is in Unix nanoseconds.
	Now int64
}

// RuleUsage is what a bucket holds of the series of a rule. Times are texts of RFC 3339, or empty.
type RuleUsage struct {
	// Number counts from 1. The last one is the rule of the series that no other matches.
	Number int `json:"rule"`
	retention.Rule
	Blocks int    `json:"blocks"`
	Rows   uint64 `json:"rows"`
	// Bytes is an estimate: the share of the rows in the bytes of their blocks.
	Bytes int64 `json:"bytes"`
	// ExpiredBytes are those of blocks of which all rows of the rule have expired.
	ExpiredBytes int64  `json:"expired_bytes"`
	Oldest       string `json:"oldest,omitempty"`
	// NextGone and AllGone say when the rows of the first and of the last block expire.
	NextGone string `json:"next_gone,omitempty"`
	AllGone  string `json:"all_gone,omitempty"`

	oldest, next, all int64
}

// InspectRetention prints for each rule what the live blocks of a bucket hold of its series. It reads the
// blocks that have tenants to which several rules may apply. The error names blocks that cannot be read.
func InspectRetention(ctx context.Context, out io.Writer, b InspectBucket, o RetentionOptions) error {
	s, err := catalog.ReadSurvey(ctx, b, nil)
	if err != nil {
		return err
	}
	var rules []*RuleUsage
	for {
		r, ok := o.Rules.Rule(len(rules))
		if !ok {
			break
		}
		rules = append(rules, &RuleUsage{Number: len(rules) + 1, Rule: r, oldest: math.MaxInt64, next: math.MaxInt64, all: math.MinInt64})
	}
	var errs []error
	for i := range s.Blocks {
		if sb := &s.Blocks[i]; sb.HiddenBy == "" && sb.Resolution == 0 {
			if err := o.addBlock(ctx, b, &sb.Block, rules); err != nil {
				errs = append(errs, fmt.Errorf("block %s: %w", sb.ID, err))
			}
		}
	}
	for _, r := range rules {
		if r.Blocks > 0 {
			r.Oldest, r.NextGone, r.AllGone = instant(r.oldest), gone(r.next), gone(r.all)
		}
	}
	if o.JSON {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		errs = append(errs, e.Encode(rules))
	} else {
		errs = append(errs, printRules(out, rules))
	}
	return errors.Join(append(errs, s.Problems...)...)
}

// gone formats the time when rows expire.
func gone(t int64) string {
	if t == math.MaxInt64 {
		return "never"
	}
	return instant(t)
}

func printRules(out io.Writer, rules []*RuleUsage) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tTENANT\tSIGNAL\tMATCH\tKEEP\tBLOCKS\tROWS\tBYTES\tEXPIRED BYTES\tOLDEST\tNEXT GONE\tALL GONE")
	for _, r := range rules {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", r.Number, dash(r.Tenant), dash(r.Signal), dash(r.Match), r.Keep,
			r.Blocks, r.Rows, r.Bytes, r.ExpiredBytes, dash(r.Oldest), dash(r.NextGone), dash(r.AllGone))
	}
	return w.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// ruleRows are the rows of one rule in a block.
type ruleRows struct {
	rows   uint64
	weight float64 // the share of the block's bytes
	oldest int64
}

// addBlock adds the rows of a block to the rules of their series.
func (o *RetentionOptions) addBlock(ctx context.Context, b InspectBucket, block *catalog.Block, rules []*RuleUsage) error {
	if o.Tenant != "" && !block.HasTenant(o.Tenant) {
		return nil
	}
	name := catalog.ObjectName(block.ID)
	read := func(ctx context.Context, off, n int64) ([]byte, error) { return b.GetRange(ctx, name, off, n) }
	r, err := part.OpenWith(ctx, &rangePages{read}, read, block.Bytes)
	if err != nil {
		return err
	}
	found := map[int]*ruleRows{}
	add := func(rule int, rows uint64, weight float64, oldest int64) {
		if found[rule] == nil {
			found[rule] = &ruleRows{oldest: math.MaxInt64}
		}
		x := found[rule]
		x.rows, x.weight, x.oldest = x.rows+rows, x.weight+weight, min(x.oldest, oldest)
	}
	m := r.Meta()
	total := float64(max(1, m.Samples+m.Exemplars+m.Text))
	mixed := map[string]retention.Policy{}
	for i := range m.Tenants {
		t := &m.Tenants[i]
		if o.Tenant != "" && o.Tenant != t.Name {
			continue
		}
		p := o.Rules.Policy(t.Name, m.Signal)
		if rule, ok := p.Single(); ok {
			rows := t.Samples + t.Exemplars + t.Text
			add(rule, rows, float64(rows)/total, t.Range.Min)
		} else {
			mixed[t.Name] = p
		}
	}
	if len(mixed) > 0 {
		err = eachMixed(ctx, r, mixed, func(rule int, rows uint64, oldest int64) { add(rule, rows, float64(rows)/total, oldest) })
	}
	if err != nil {
		return err
	}
	for rule, x := range found {
		rules[rule].add(o, block, x)
	}
	return nil
}

// eachMixed visits the series of tenants to which several rules may apply.
func eachMixed(ctx context.Context, r *part.Reader, mixed map[string]retention.Policy, visit func(rule int, rows uint64, oldest int64)) error {
	for s, err := range part.All(ctx, r.Stream()) {
		if err != nil {
			return err
		}
		p, ok := mixed[s.Tenant]
		if !ok {
			continue
		}
		rows, oldest := uint64(0), int64(math.MaxInt64)
		for _, f := range model.PointFamilies() {
			if times := s.Rows.Family(f).Times; len(times) > 0 {
				rows, oldest = rows+uint64(len(times)), min(oldest, times[0])
			}
		}
		if s.Text != nil {
			times, n := s.Text.Extent()
			rows, oldest = rows+n, min(oldest, times.Min)
		}
		visit(p.Number(s.Labels), rows, oldest)
	}
	return nil
}

// add adds the rows of a block.
func (u *RuleUsage) add(o *RetentionOptions, block *catalog.Block, x *ruleRows) {
	bytes := int64(float64(block.Bytes) * x.weight)
	u.Blocks, u.Rows, u.Bytes, u.oldest = u.Blocks+1, u.Rows+x.rows, u.Bytes+bytes, min(u.oldest, x.oldest)
	keep, end := o.Rules.KeepOfRule(u.Number-1), int64(math.MaxInt64)
	if keep <= retention.Forever-time.Duration(max(0, block.Newest())) {
		end = block.Newest() + int64(keep)
	}
	u.next, u.all = min(u.next, end), max(u.all, end)
	if end < o.Now {
		u.ExpiredBytes += bytes
	}
}
