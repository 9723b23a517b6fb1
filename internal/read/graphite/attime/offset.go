package attime

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// maxSeconds bounds offsets and times: 285 years, a little less than the range of Unix nanoseconds.
const maxSeconds = 9_000_000_000

// Unit is a unit of offsets and alignments.
type Unit int

// The units of offsets, from the smallest.
const (
	Seconds Unit = iota
	Minutes
	Hours
	Days
	Weeks
	Months
	Years
)

// seconds of each unit. A month is 30 days and a year 365.
var seconds = [...]int64{1, 60, 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400}

// ParseUnit reads the name of a unit, of which the beginning decides: s, min, h, d, w, mon, y.
func ParseUnit(s string) (Unit, error) {
	for i, begin := range [...]string{"s", "min", "h", "d", "w", "mon", "y"} {
		if strings.HasPrefix(s, begin) {
			return Unit(i), nil
		}
	}
	return 0, fmt.Errorf("%w: expected the unit s, min, h, d, w, mon or y, found %q", model.ErrInvalid, s)
}

// ParseOffset reads a sequence of numbers with units, after an optional sign, into seconds: -1d12h, 5min.
// An empty text is 0.
func ParseOffset(s string) (int64, error) {
	rest, sign := s, int64(1)
	switch {
	case s == "":
		return 0, nil
	case s[0] == '-':
		rest, sign = s[1:], -1
	case s[0] == '+':
		rest = s[1:]
	case s[0] < '0' || s[0] > '9':
		return 0, fmt.Errorf("%w: offset %q must begin with +, - or a digit", model.ErrInvalid, s)
	}
	var total int64
	for rest != "" {
		n := span(rest, func(c byte) bool { return '0' <= c && c <= '9' })
		number, err := strconv.ParseInt(rest[:n], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: offset %q has no number at %q", model.ErrInvalid, s, rest)
		}
		rest = rest[n:]
		n = span(rest, func(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' })
		unit, err := ParseUnit(rest[:n])
		if err != nil {
			return 0, fmt.Errorf("%w in the offset %q", err, s)
		}
		rest = rest[n:]
		if number > maxSeconds/seconds[unit] || total+number*seconds[unit] > maxSeconds {
			return 0, fmt.Errorf("%w: offset %q is longer than 285 years", model.ErrInvalid, s)
		}
		total += number * seconds[unit]
	}
	return sign * total, nil
}

// span returns the length of the beginning whose bytes are all in a class.
func span(s string, in func(byte) bool) int {
	for i := range len(s) {
		if !in(s[i]) {
			return i
		}
	}
	return len(s)
}
