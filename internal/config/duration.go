package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time. Its text has the form that Prometheus reads: numbers with the units y, w, d,
// h, m, s, ms, each at most once and in this order (1h30m). A year has 365 days. A bare 0 needs no unit.
type Duration time.Duration

type durationUnit struct {
	suffix string
	length time.Duration
}

func durationUnits() []durationUnit {
	const day = 24 * time.Hour
	return []durationUnit{
		{"y", 365 * day}, {"w", 7 * day}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
	}
}

// UnmarshalText parses a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	n, err := ParseDuration(string(text))
	*d = Duration(n)
	return err
}

// ParseDuration parses a duration of at least 0.
func ParseDuration(text string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a duration; write one such as 30d, 12h or 1h30m", text)
	if text == "0" {
		return 0, nil
	}
	if text == "" {
		return 0, bad
	}
	var sum time.Duration
	units := durationUnits()
	for rest := text; rest != ""; {
		digits := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if digits <= 0 {
			return 0, bad
		}
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil {
			return 0, bad
		}
		rest = rest[digits:]
		end := strings.IndexFunc(rest, func(r rune) bool { return r >= '0' && r <= '9' })
		if end < 0 {
			end = len(rest)
		}
		i := slices.IndexFunc(units, func(u durationUnit) bool { return u.suffix == rest[:end] })
		if i < 0 {
			return 0, bad
		}
		length := units[i].length
		if n > (math.MaxInt64-int64(sum))/int64(length) {
			return 0, fmt.Errorf("%q is too long: the longest duration is 292 years", text)
		}
		sum += time.Duration(n) * length
		units, rest = units[i+1:], rest[end:]
	}
	return sum, nil
}

// String returns the shortest text that parses as the same duration, to the millisecond.
func (d Duration) String() string {
	if d == 0 {
		return "0"
	}
	var b strings.Builder
	left := time.Duration(d)
	for _, u := range durationUnits() {
		if u.suffix == "y" || u.suffix == "w" { // 30d reads better than 4w2d
			continue
		}
		if n := left / u.length; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.suffix)
			left -= n * u.length
		}
	}
	return b.String()
}

// Std returns the duration as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }
