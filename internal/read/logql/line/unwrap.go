package line

import (
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// number returns the value of a label as a number. It returns false for a line that lacks the label and so is
// not part of the sample. If the value is not a number, it notes an error.
func (r *Runner) number(label string, c syntax.Conversion) (float64, bool) {
	s, _ := r.labels.get(label)
	if s == "" {
		return 0, false
	}
	v, err := convert(s, c)
	if err != nil {
		r.labels.fail(errSampleExtraction, err.Error())
	}
	return v, true
}

// convert returns a value as a number.
func convert(s string, c syntax.Conversion) (float64, error) {
	switch c {
	case syntax.ConvertDuration, syntax.ConvertDurationSeconds:
		d, err := time.ParseDuration(s)
		return d.Seconds(), err
	case syntax.ConvertBytes:
		n, err := parseBytes(s)
		return float64(n), err
	}
	if v, ok := decimal(s); ok {
		return v, nil
	}
	return strconv.ParseFloat(s, 64)
}

// exactDigits is how many decimal digits a float holds in any case.
const exactDigits = 15

var powersOfTen = [exactDigits + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// decimal reads a number of few digits without an exponent, as strconv.ParseFloat does: the digits and the
// power of ten are exact, so that only the division rounds. It returns false for anything else.
func decimal(s string) (v float64, ok bool) {
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	if len(s) > exactDigits+1 {
		return 0, false
	}
	digits, fraction := uint64(0), 0
	point := false
	for i := range len(s) {
		switch c := s[i] - '0'; {
		case c <= 9:
			digits = 10*digits + uint64(c)
			if point {
				fraction++
			}
		case s[i] == '.' && !point:
			point = true
		default:
			return 0, false
		}
	}
	if n := len(s); n == 0 || point && n == 1 || !point && n > exactDigits {
		return 0, false
	}
	v = float64(digits) / powersOfTen[fraction]
	if negative {
		v = -v
	}
	return v, true
}
