package attime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

var (
	months   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// Parse reads a time. References such as noon are in the zone of now, which is the time of the request.
func Parse(s string, now time.Time) (time.Time, error) {
	text := strings.NewReplacer("_", "", ",", "", " ", "").Replace(strings.ToLower(strings.TrimSpace(s)))
	if text != "" && span(text, digit) == len(text) && !isDate(text) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n > maxSeconds {
			return time.Time{}, fmt.Errorf("%w: time %q is beyond the year 2255", model.ErrInvalid, s)
		}
		return time.Unix(n, 0).In(now.Location()), nil
	}
	ref, offset := text, ""
	for _, sign := range "+-" {
		if i := strings.IndexRune(text, sign); i >= 0 {
			ref, offset = text[:i], text[i:]
			break
		}
	}
	at, err := reference(ref, now)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w (in the time %q)", err, s)
	}
	delta, err := ParseOffset(offset)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w (in the time %q)", err, s)
	}
	if sum := at.Unix() + delta; sum > maxSeconds || sum < -maxSeconds {
		return time.Time{}, fmt.Errorf("%w: time %q is outside the years 1684 to 2255", model.ErrInvalid, s)
	}
	// Seconds are added to the instant: a day may have 23 hours.
	return at.Add(time.Duration(delta) * time.Second), nil
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// isDate reports whether eight digits are YYYYMMDD rather than seconds.
func isDate(s string) bool {
	return len(s) == 8 && s[:4] > "1900" && s[4:6] < "13" && s[6:] < "32"
}

// reference reads the part before the offset: a time of day, then a day. Both may be missing.
func reference(ref string, now time.Time) (time.Time, error) {
	if ref == "" || ref == "now" {
		return now, nil
	}
	hour, minute, rest, err := timeOfDay(ref)
	if err != nil {
		return time.Time{}, err
	}
	year, month, day, err := dayOf(rest, now)
	if err != nil {
		return time.Time{}, err
	}
	if hour > 23 || minute > 59 {
		return time.Time{}, fmt.Errorf("%w: %q is not a time of day", model.ErrInvalid, ref)
	}
	return local(year, month, day, hour, minute, now.Location()), nil
}

// local returns a wall clock time. Of a time that a change of the clocks skips or repeats, it is the one in
// standard time, as in graphite-web.
func local(year int, month time.Month, day, hour, minute int, zone *time.Location) time.Time {
	at := time.Date(year, month, day, hour, minute, 0, 0, zone)
	wall := time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
	for _, other := range []time.Time{at.Add(-3 * time.Hour), at.Add(3 * time.Hour)} {
		_, offset := other.Zone()
		standard := time.Unix(wall.Unix()-int64(offset), 0).In(zone)
		if _, now := standard.Zone(); !other.IsDST() && (at.IsDST() || standard.Hour() != hour) && (now == offset || at.Hour() != hour) {
			return standard
		}
	}
	return at
}

// timeOfDay reads HH:MM, HH:MMpm, 5am, noon, midnight or teatime, and returns what follows.
func timeOfDay(ref string) (hour, minute int, rest string, err error) {
	number := func(s string) (n int) {
		if n, err = strconv.Atoi(s); err != nil || n < 0 {
			err = fmt.Errorf("%w: %q is not a number in the time of day %q", model.ErrInvalid, s, ref)
		}
		return n
	}
	rest = ref
	if i := strings.IndexByte(rest, ':'); 0 < i && i < 3 {
		hour = number(rest[:i])
		if err != nil {
			return 0, 0, "", err
		}
		minute = number(rest[i+1 : min(i+3, len(rest))])
		if err != nil {
			return 0, 0, "", err
		}
		rest = rest[min(i+3, len(rest)):]
		if after, ok := strings.CutPrefix(rest, "am"); ok {
			rest = after
		} else if after, ok := strings.CutPrefix(rest, "pm"); ok {
			hour, rest = (hour+12)%24, after
		}
	}
	for half, suffix := range []string{"am", "pm"} {
		if i := strings.Index(rest, suffix); 0 < i && i < 3 {
			hour = number(rest[:i])
			if err != nil {
				return 0, 0, "", err
			}
			if half == 1 {
				hour = (hour + 12) % 24
			}
			rest = rest[i+2:]
		}
	}
	for _, named := range []struct {
		name string
		hour int
	}{{"noon", 12}, {"midnight", 0}, {"teatime", 16}} {
		if after, ok := strings.CutPrefix(rest, named.name); ok {
			return named.hour, 0, after, nil
		}
	}
	return hour, minute, rest, nil
}

// dayOf reads a day: a date in one of three forms, a weekday, or a day next to today.
func dayOf(s string, now time.Time) (int, time.Month, int, error) {
	year, month, day := now.Date()
	relative := func(days int) (int, time.Month, int, error) {
		y, m, d := time.Date(year, month, day+days, 12, 0, 0, 0, time.UTC).Date()
		return y, m, d, nil
	}
	bad := func(want string) (int, time.Month, int, error) {
		return 0, 0, 0, fmt.Errorf("%w: %q is not a day: expected %s", model.ErrInvalid, s, want)
	}
	date := func(y, m, d int) (int, time.Month, int, error) {
		if at := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC); y < 1 || y > 9999 || at.Day() != d || at.Month() != time.Month(m) {
			return bad("a day of the calendar")
		}
		return y, time.Month(m), d, nil
	}
	switch {
	case s == "" || s == "today":
		return relative(0)
	case s == "yesterday":
		return relative(-1)
	case s == "tomorrow":
		return relative(1)
	case strings.Count(s, "/") == 2:
		var parts [3]int
		for i, field := range strings.Split(s, "/") {
			n, err := strconv.Atoi(field)
			if err != nil || n < 0 {
				return bad("MM/DD/YY or MM/DD/YYYY")
			}
			parts[i] = n
		}
		y := parts[2]
		if y < 1900 {
			y += 1900
		}
		if y < 1970 {
			y += 100
		}
		return date(y, parts[0], parts[1])
	case len(s) == 8 && span(s, digit) == 8:
		y, _ := strconv.Atoi(s[:4])
		m, _ := strconv.Atoi(s[4:6])
		d, _ := strconv.Atoi(s[6:])
		return date(y, m, d)
	}
	begin := s[:min(3, len(s))]
	if i := slices.Index(months, begin); i >= 0 {
		digits := 0
		for digits < 2 && digits < len(s)-3 && digit(s[len(s)-1-digits]) {
			digits++
		}
		d, err := strconv.Atoi(s[len(s)-digits:])
		if err != nil {
			return bad("a day of the month after the month's name")
		}
		return date(year, i+1, d)
	}
	if i := slices.Index(weekdays, begin); i >= 0 {
		return relative(-((int(now.Weekday()) - i + 7) % 7))
	}
	return bad("today, yesterday, tomorrow, a weekday, MM/DD/YY, YYYYMMDD or a month and a day")
}
