package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// Deletion says which rows are deleted: those of a tenant's series that satisfy all matchers, with times in a range, in
// blocks that were committed before it. It takes effect when it is read; compaction then leaves the rows out.
type Deletion struct {
	// Generation numbers deletions without gaps, from 1. The catalogue gives it.
	Generation uint64
	Signal     model.Signal
	Tenant     string
	// Matchers are never empty: what deletes a whole tenant says so, {Name: "", Op: MatchEqual, Value: ""}.
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

// A deletion is read by everybody and looked at for each series of its tenant.
const (
	maxMatchers     = 64
	maxMatcherBytes = 64 << 10
)

// compile checks a deletion and makes it ready for use.
func (d *Deletion) compile() error {
	if err := model.CheckTenant(d.Tenant); err != nil {
		return err
	}
	switch {
	case d.Signal != model.Metrics && d.Signal != model.Logs:
		return fmt.Errorf("%w: a deletion of the signal %s", model.ErrInvalid, d.Signal)
	case len(d.Matchers) == 0 || len(d.Matchers) > maxMatchers:
		return fmt.Errorf("%w: a deletion with %d matchers; 1 to %d are allowed", model.ErrInvalid, len(d.Matchers), maxMatchers)
	case d.Range.Min > d.Range.Max:
		return fmt.Errorf("%w: a deletion of no times", model.ErrInvalid)
	case d.Generation > maxNumber:
		return fmt.Errorf("%w: a deletion of generation %d", model.ErrInvalid, d.Generation)
	}
	d.match = d.match[:0]
	size := 0
	for _, m := range d.Matchers {
		if size += len(m.Name) + len(m.Value); size > maxMatcherBytes {
			return fmt.Errorf("%w: a deletion with matchers of more than %d bytes", model.ErrInvalid, maxMatcherBytes)
		}
		if !utf8.ValidString(m.Name) || !utf8.ValidString(m.Value) { // JSON would change it
			return fmt.Errorf("%w: matcher of %q: it is not UTF-8", model.ErrInvalid, m.Name)
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
		// As PromQL has it: the whole value, with a dot that stands for a new line too.
		re, err := regexp.Compile("^(?s:" + want + ")$")
		if err != nil {
			return nil, fmt.Errorf("%w: matcher of %s: %v", model.ErrInvalid, m.Name, err)
		}
		wanted := m.Op == model.MatchRegexp
		return func(v string) bool { return re.MatchString(v) == wanted }, nil
	}
	return nil, fmt.Errorf("%w: matcher of %s: operator %d", model.ErrInvalid, m.Name, m.Op)
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

// ModelMatchers returns the matchers as the reader of a block wants them.
func (d *Deletion) ModelMatchers() []model.Matcher {
	ms := make([]model.Matcher, 0, len(d.match))
	for i, m := range d.Matchers {
		ms = append(ms, model.Matcher{Name: m.Name, Op: m.Op, Value: m.Value, Match: d.match[i]})
	}
	return ms
}

// concerns reports whether a block may hold rows that are deleted.
func (d *Deletion) concerns(b *Block) bool {
	return b.Generation < d.Generation && b.Signal == d.Signal && b.Range.Overlaps(d.Range) && b.HasTenant(d.Tenant)
}

// Deletions are those that apply to one block and one tenant.
type Deletions []*Deletion

// Ranges returns the times at which a series has been deleted, one range after the other; usually none.
func (ds Deletions) Ranges(l model.Labels) []model.TimeRange {
	var ranges []model.TimeRange
	for _, d := range ds {
		if d.Matches(l) {
			ranges = append(ranges, d.Range)
		}
	}
	return ranges
}

// CutRows takes the rows from index from on whose times lie in any of the ranges out of r.
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
