package vector

import (
	"context"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// matchError says in Loki's words why elements cannot be matched. It is of class invalid.
type matchError string

func (e matchError) Error() string { return string(e) }
func (e matchError) Unwrap() error { return model.ErrInvalid }

const (
	errDuplicateRight matchError = "found duplicate series on the right hand-side;many-to-many matching not allowed: matching labels must be unique on one side"
	errDuplicateLeft  matchError = "found duplicate series on the left hand-side;many-to-many matching not allowed: matching labels must be unique on one side"
	errManyToOne      matchError = "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)"
	errNotUnique      matchError = "multiple matches for labels: grouping labels must ensure unique matches"
)

// match carries out arithmetic and comparisons. Each element of the side that may have many is combined with
// the one of the other side that has the same signature.
func match(ctx context.Context, quota *model.Quota, e *syntax.BinaryExpr, left, right *Matrix) (*Matrix, error) {
	many, one := left, right
	if e.Matching.Card == syntax.OneToMany {
		many, one = one, many
	}
	m := matcher{e: e, quota: quota, steps: left.Steps.Count, filters: isFilter(e), failsAt: math.MaxInt}
	signatures := signatures(&e.Matching)
	if err := m.gather(one, signatures.add(one), len(signatures.labels)); err != nil {
		return nil, err
	}
	numbers := signatures.add(many)
	m.results = make(map[string]int)
	for i := range many.Series {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if n := int(numbers[i]); n < len(m.ones) {
			if err := m.combine(&many.Series[i], &m.ones[n], signatures.labels[n], one); err != nil {
				return nil, err
			}
		}
	}
	for i := range m.ones {
		_ = quota.TakeBytes(-m.oneSize(&m.ones[i])) // giving back does not fail
	}
	if m.err != nil {
		return nil, m.err
	}
	out := &Matrix{Steps: left.Steps}
	for _, r := range m.out {
		out.add(quota, r.Series)
		_ = quota.TakeBytes(-matchedSize(m.steps)) // giving back does not fail
	}
	return out, nil
}

// matcher matches the series of two matrices.
type matcher struct {
	e       *syntax.BinaryExpr
	quota   *model.Quota
	steps   int
	filters bool
	ones    []oneSide      // by the number of the signature
	results map[string]int // by labels, the index in out
	out     []result

	// The error of the earliest step. Of one step, duplicates of the side that has one element come first.
	err     error
	failsAt int
	key     []byte
	builder model.LabelsBuilder
}

// oneSide is what the side that has one element has for a signature: several series, if they have values at
// different steps.
type oneSide struct {
	present Set
	values  []float64
	owners  []int32 // for each step, the index of its series; nil: it is always series
	series  int32
}

// result is a series of the result. matched are the steps at which it had a match; the value of some of them
// may have been filtered.
type result struct {
	Series
	matched Set
}

func matchedSize(steps int) int64 { return 8 * int64((steps+63)/64) }

// oneSize is the memory of what was joined out of several series.
func (m *matcher) oneSize(o *oneSide) int64 {
	if o.owners == nil {
		return 0
	}
	return 12*int64(m.steps) + matchedSize(m.steps)
}

// fail notes an error at a step.
func (m *matcher) fail(step int, err error) {
	if step < m.failsAt {
		m.failsAt, m.err = step, err
	}
}

// gather gathers the side that has one element by signature. Two elements of one step are an error, whether
// or not the other side has a match for them.
func (m *matcher) gather(one *Matrix, numbers []int32, signatures int) error {
	duplicate := errDuplicateRight
	if m.e.Matching.Card == syntax.OneToMany {
		duplicate = errDuplicateLeft
	}
	m.ones = make([]oneSide, signatures)
	for i := range one.Series {
		s := &one.Series[i]
		o := &m.ones[numbers[i]]
		if o.present == nil {
			*o = oneSide{present: s.Present, values: s.Values, series: int32(i)}
			continue
		}
		if o.owners == nil {
			first := *o
			o.owners = make([]int32, m.steps)
			if err := m.quota.TakeBytes(m.oneSize(o)); err != nil {
				return err
			}
			o.present, o.values = NewSet(m.steps), make([]float64, m.steps)
			for step := range first.present.All() {
				o.set(step, first.values[step], first.series)
			}
		}
		for step := range s.Present.All() {
			if o.present.Has(step) {
				m.fail(step, duplicate)
				break
			}
			o.set(step, s.Values[step], int32(i))
		}
	}
	return nil
}

func (o *oneSide) set(step int, value float64, owner int32) {
	o.present.Add(step)
	o.values[step], o.owners[step] = value, owner
}

// combine combines a series with its matches.
func (m *matcher) combine(s *Series, o *oneSide, signature model.Labels, one *Matrix) error {
	card := m.e.Matching.Card
	var r *result
	of := int32(-1) // whose match r is
	for step := range s.Present.All() {
		if !o.present.Has(step) {
			continue
		}
		owner := o.series
		if o.owners != nil {
			owner = o.owners[step]
		}
		if r == nil || owner != of && len(m.e.Matching.Include) > 0 {
			labels := signature
			if card != syntax.OneToOne {
				var err error
				if labels, err = m.include(s.Labels, one.Series[owner].Labels); err != nil {
					return err
				}
			}
			var err error
			if r, err = m.result(labels); err != nil {
				return err
			}
			of = owner
		}
		if r.matched.Has(step) {
			if card == syntax.OneToOne {
				m.fail(step, errManyToOne)
			} else {
				m.fail(step, errNotUnique)
			}
			return nil
		}
		r.matched.Add(step)
		left, right := s.Values[step], o.values[step]
		if card == syntax.OneToMany {
			left, right = right, left
		}
		value := syntax.Calculate(m.e.Op, left, right)
		if m.filters {
			if value == 0 {
				continue
			}
			value = left
		}
		r.Values[step] = value
		r.Present.Add(step)
	}
	return nil
}

// result returns the series of the result that has these labels. It is valid until the next call.
func (m *matcher) result(labels model.Labels) (*result, error) {
	if i, known := m.results[string(labels)]; known {
		return &m.out[i], nil
	}
	if err := m.quota.TakeBytes(matchedSize(m.steps)); err != nil {
		return nil, err
	}
	own := string(labels)
	s, err := newSeries(m.quota, model.Labels(own), m.steps)
	if err != nil {
		return nil, err
	}
	m.results[own] = len(m.out)
	m.out = append(m.out, result{s, NewSet(m.steps)})
	return &m.out[len(m.out)-1], nil
}

// include returns the labels of an element of the side that has many, with those that are taken from its
// match. It is valid until the next call.
func (m *matcher) include(many, one model.Labels) (model.Labels, error) {
	m.builder.Reset()
	for name, value, rest, ok := many.Next(); ok; name, value, rest, ok = rest.Next() {
		if !contains(m.e.Matching.Include, name) {
			m.builder.Add(name, value)
		}
	}
	for name, value, rest, ok := one.Next(); ok; name, value, rest, ok = rest.Next() {
		if contains(m.e.Matching.Include, name) {
			m.builder.Add(name, value)
		}
	}
	var err error
	m.key, err = m.builder.Append(m.key[:0])
	return m.key, err
}
