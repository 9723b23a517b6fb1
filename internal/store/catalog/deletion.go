package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// Deletion hides rows: those of a tenant's series that satisfy all matchers, with times in a range, in blocks
// that were committed before it. Readers apply it; compaction later drops the rows.
type Deletion struct {
	// Generation numbers deletions without gaps, from 1. The catalogue assigns it.
	Generation uint64
	Signal     model.Signal
	Tenant     string
	// Matchers are never empty: to delete a whole tenant, say so by {Name: "", Op: MatchEqual, Value: ""}.
	Matchers []Matcher
	Range    model.TimeRange
	// Committed is in Unix nanoseconds.
	Committed int64

	match []func(string) bool
}

// Matcher is a matcher that can be stored.
type Matcher struct {
	Name  string
	Op    model.MatchOp
	Value string
}

// String writes a matcher as PromQL does.
func (m Matcher) String() string {
	op := "?"
	if int(m.Op) < len(matchOps) {
		op = matchOps[m.Op]
	}
	return fmt.Sprintf("%s%s%q", m.Name, op, m.Value)
}

// Every process reads every deletion, and checks it for each series of its tenant.
const (
	maxMatchers     = 64
	maxMatcherBytes = 64 << 10
)

// compile validates a deletion and compiles its matchers.
func (d *Deletion) compile() error {
	if err := model.CheckTenant(d.Tenant); err != nil {
		return err
	}
	switch {
	case d.Signal != model.Metrics && d.Signal != model.Logs:
		return fmt.Errorf("%w: deletion: unknown signal %s", model.ErrInvalid, d.Signal)
	case len(d.Matchers) == 0 || len(d.Matchers) > maxMatchers:
		return fmt.Errorf("%w: deletion: expected 1 to %d matchers, got %d", model.ErrInvalid, maxMatchers, len(d.Matchers))
	case d.Range.Min > d.Range.Max:
		return fmt.Errorf("%w: deletion: the time range is empty", model.ErrInvalid)
	case d.Generation > maxNumber:
		return fmt.Errorf("%w: deletion: invalid generation %d", model.ErrInvalid, d.Generation)
	}
	d.match = d.match[:0]
	size := 0
	for _, m := range d.Matchers {
		if size += len(m.Name) + len(m.Value); size > maxMatcherBytes {
			return fmt.Errorf("%w: deletion: the matchers have more than %d bytes", model.ErrInvalid, maxMatcherBytes)
		}
		if !utf8.ValidString(m.Name) || !utf8.ValidString(m.Value) { // JSON would change it
			return fmt.Errorf("%w: matcher of %q: name or value is not valid UTF-8", model.ErrInvalid, m.Name)
		}
		f, err := m.compile()
		if err != nil {
			return err
		}
		d.match = append(d.match, f)
	}
	return nil
}

func (m *Matcher) compile() (func(string) bool, error) {
	want := m.Value
	switch m.Op {
	case model.MatchEqual:
		return func(v string) bool { return v == want }, nil
	case model.MatchNotEqual:
		return func(v string) bool { return v != want }, nil
	case model.MatchRegexp, model.MatchNotRegexp:
		// As in PromQL: anchored to the whole value, and a dot matches a new line.
		re, err := regexp.Compile("^(?s:" + want + ")$")
		if err != nil {
			return nil, fmt.Errorf("%w: matcher of %s: %v", model.ErrInvalid, m.Name, err)
		}
		wanted := m.Op == model.MatchRegexp
		return func(v string) bool { return re.MatchString(v) == wanted }, nil
	}
	return nil, fmt.Errorf("%w: matcher of %s: unknown operator %d", model.ErrInvalid, m.Name, m.Op)
}

// Matches reports whether the labels satisfy all matchers.
func (d *Deletion) Matches(l model.Labels) bool {
	for i, f := range d.match {
		if !f(string(l.Get(d.Matchers[i].Name))) {
			return false
		}
	}
	return true
}

// ModelMatchers returns the matchers in the form that the reader of a block expects.
func (d *Deletion) ModelMatchers() []model.Matcher {
	ms := make([]model.Matcher, 0, len(d.match))
	for i, m := range d.Matchers {
		ms = append(ms, model.Matcher{Name: m.Name, Op: m.Op, Value: m.Value, Match: d.match[i]})
	}
	return ms
}

// concerns reports whether a block may hold rows that the deletion hides.
func (d *Deletion) concerns(b *Block) bool {
	return b.Generation < d.Generation && b.Signal == d.Signal && b.Range.Overlaps(d.Range) && b.HasTenant(d.Tenant)
}

// Deletions is a list of deletions in the order of their generations.
type Deletions []*Deletion

// Ranges returns the time ranges in which a series is deleted; usually none.
func (ds Deletions) Ranges(l model.Labels) []model.TimeRange {
	var ranges []model.TimeRange
	for _, d := range ds {
		if d.Matches(l) {
			ranges = append(ranges, d.Range)
		}
	}
	return ranges
}

// CutRows removes the rows of r from index from on whose times lie in any of the ranges.
func CutRows(r *model.Rows, from int, ranges []model.TimeRange) {
	if len(ranges) == 0 {
		return
	}
	out := from
	for i := from; i < len(r.Times); i++ {
		if slices.ContainsFunc(ranges, func(g model.TimeRange) bool { return g.Contains(r.Times[i]) }) {
			continue
		}
		if out != i {
			r.Times[out], r.Values[out] = r.Times[i], r.Values[i]
			if len(r.Starts) > 0 {
				r.Starts[out] = r.Starts[i]
			}
			if len(r.Kinds) > 0 {
				r.Kinds[out] = r.Kinds[i]
			}
		}
		out++
	}
	r.Truncate(out)
}
