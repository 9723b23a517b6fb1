package line

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/shaledb/shale/internal/read/logql/line/match"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// condition is what a label filter asks of the labels of a line.
type condition interface {
	holds(r *Runner) bool
}

// labelFilter keeps the lines whose labels satisfy a condition.
type labelFilter struct {
	condition condition
}

func (f *labelFilter) run(r *Runner, line []byte) ([]byte, bool) { return line, f.condition.holds(r) }

func newCondition(c syntax.Condition) (condition, error) {
	switch c := c.(type) {
	case *syntax.AndCondition:
		left, right, err := newSides(c.Left, c.Right)
		return &both{left, right}, err
	case *syntax.OrCondition:
		left, right, err := newSides(c.Left, c.Right)
		return &either{left, right}, err
	case *syntax.StringCondition:
		return &stringCondition{c.Name, c.Match}, nil
	case *syntax.NumberCondition:
		return &numberCondition{c.Label, c.Op, c.Value}, nil
	case *syntax.DurationCondition:
		return &durationCondition{c.Label, c.Op, c.Value}, nil
	case *syntax.BytesCondition:
		return &bytesCondition{c.Label, c.Op, c.Value}, nil
	case *syntax.IPCondition:
		t, err := match.NewAddressTest(c.Addresses)
		if err != nil {
			return nil, err
		}
		return &addressCondition{c.Label, c.Op == syntax.CompareNotEqual, t}, nil
	}
	return nil, invalidf("label filter: unknown condition %T", c)
}

func newSides(l, r syntax.Condition) (left, right condition, err error) {
	if left, err = newCondition(l); err == nil {
		right, err = newCondition(r)
	}
	return left, right, err
}

// both looks at both sides whatever the first one says: what goes wrong in the second one may be seen, if
// there is an or around.
type both struct{ left, right condition }

func (c *both) holds(r *Runner) bool {
	left := c.left.holds(r)
	return c.right.holds(r) && left
}

type either struct{ left, right condition }

func (c *either) holds(r *Runner) bool { return c.left.holds(r) || c.right.holds(r) }

// stringCondition is the only one that can look at the label of errors.
type stringCondition struct {
	label string
	match func(string) bool
}

func (c *stringCondition) holds(r *Runner) bool {
	if c.label == ErrorLabel {
		return c.match(r.labels.err)
	}
	v, _ := r.labels.get(c.label)
	return c.match(v)
}

func compare[T float64 | time.Duration | uint64](a T, op syntax.CompareOp, b T) bool {
	switch op {
	case syntax.CompareEqual:
		return a == b
	case syntax.CompareNotEqual:
		return a != b
	case syntax.CompareGreater:
		return a > b
	case syntax.CompareGreaterOrEqual:
		return a >= b
	case syntax.CompareLess:
		return a < b
	}
	return a <= b
}

// cannotCompare keeps the line with what is wrong with it, unless something else is already.
func cannotCompare(r *Runner, err error) bool {
	if r.labels.err == "" && !r.quiet {
		r.labels.fail(errLabelFilter, err.Error())
	}
	return true
}

type numberCondition struct {
	label string
	op    syntax.CompareOp
	value float64
}

func (c *numberCondition) holds(r *Runner) bool {
	s, ok := r.labels.get(c.label)
	if !ok {
		return false
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return cannotCompare(r, err)
	}
	return compare(v, c.op, c.value)
}

type durationCondition struct {
	label string
	op    syntax.CompareOp
	value time.Duration
}

func (c *durationCondition) holds(r *Runner) bool {
	s, ok := r.labels.get(c.label)
	if !ok {
		return false
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return cannotCompare(r, err)
	}
	return compare(v, c.op, c.value)
}

type bytesCondition struct {
	label string
	op    syntax.CompareOp
	value uint64
}

func (c *bytesCondition) holds(r *Runner) bool {
	s, ok := r.labels.get(c.label)
	if !ok {
		return false
	}
	v, err := parseBytes(s)
	if err != nil {
		return cannotCompare(r, err)
	}
	return compare(v, c.op, c.value)
}

// addressCondition leaves lines alone with which something is wrong.
type addressCondition struct {
	label  string
	negate bool
	test   *match.AddressTest
}

func (c *addressCondition) holds(r *Runner) bool {
	if r.labels.err != "" {
		return true
	}
	s, ok := r.labels.get(c.label)
	return ok && c.test.Matches(bytesOf(s)) != c.negate
}

// parseBytes reads a size as people write it: 5kB, 1.5 MiB, 1,000. Without a unit it is bytes, without an i
// or a b the unit is one of 1000.
func parseBytes(s string) (uint64, error) {
	digits, commas := 0, false
	for _, r := range s {
		if !unicode.IsDigit(r) && r != '.' && r != ',' {
			break
		}
		commas = commas || r == ','
		digits++
	}
	number := s[:digits]
	if commas {
		number = strings.ReplaceAll(number, ",", "")
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, err
	}
	unit := strings.TrimSpace(s[digits:])
	scale, ok := bytesUnit(unit)
	if !ok { // rarely: lower case may be of fewer bytes, or belong in the error
		unit = strings.ToLower(unit)
		scale, ok = bytesUnit(unit)
	}
	if !ok {
		return 0, fmt.Errorf("unhandled size name: %v", unit)
	}
	if f *= scale; f >= math.MaxUint64 {
		return 0, fmt.Errorf("too large: %v", s)
	}
	return uint64(f), nil
}

// bytesUnit returns how many bytes a unit is: k, kb, ki or kib, and so on up to e, in any case.
func bytesUnit(unit string) (float64, bool) {
	if unit == "" {
		return 1, true
	}
	power := strings.IndexByte("bkmgtpe", match.Lower(unit[0]))
	rest, base := unit[1:], 1000.0
	if power > 0 && rest != "" && match.Lower(rest[0]) == 'i' {
		rest, base = rest[1:], 1024
	}
	if power > 0 && rest != "" && match.Lower(rest[0]) == 'b' {
		rest = rest[1:]
	}
	return math.Pow(base, float64(power)), power >= 0 && rest == ""
}
