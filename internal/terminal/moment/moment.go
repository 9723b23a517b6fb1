package moment

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/config"
)

// Forms lists what Parse accepts, for messages.
const Forms = `2026-11-23, 2026-11-23T06:30 or "2026-11-23 06:30:00" (local time), 2026-11-23T06:30:00+01:00 or Z, ` +
	"Unix seconds or milliseconds, now, now-1h or -1h"

// Parse reads a point of time. A time without an offset is in the location of now; a date
// is the first moment of its day.
func Parse(s string, now time.Time) (time.Time, error) {
	t, err := readTime(s, now)
	switch {
	case err != nil && err != errNoTime:
		return time.Time{}, fmt.Errorf("%q: %w", s, err)
	case err != nil:
		return time.Time{}, fmt.Errorf("%q is not a time; write %s", s, Forms)
	case t.Year() < 1678 || t.Year() > 2261:
		return time.Time{}, fmt.Errorf("%q: times are limited to the years 1678 to 2261", s)
	}
	return t, nil
}

// errNoTime means that a text has none of the accepted forms.
var errNoTime = errors.New("not a time")

func readTime(s string, now time.Time) (time.Time, error) {
	relative := strings.TrimPrefix(s, "now")
	if relative == "" && s != "" {
		return now, nil
	}
	if relative != "" {
		d, err := config.ParseDuration(relative[1:])
		switch {
		case err == nil && relative[0] == '-':
			return now.Add(-d), nil
		case err == nil && relative[0] == '+':
			return now.Add(d), nil
		}
	}
	if t, err := unixTime(s); err != errNoTime {
		return t, err
	}
	return calendarTime(s, now.Location())
}

// unixTime reads a Unix time. The number of digits of an integer tells its unit: seconds until the year 5138,
// then milliseconds, microseconds and nanoseconds, each with three digits more.
func unixTime(s string) (time.Time, error) {
	parts := regexp.MustCompile(`^(-?)(\d{1,19})(?:\.(\d+))?$`).FindStringSubmatch(s)
	if parts == nil {
		return time.Time{}, errNoTime
	}
	n, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || parts[3] != "" && n >= 1e11 {
		return time.Time{}, errNoTime
	}
	sign := int64(1)
	if parts[1] != "" {
		sign = -1
	}
	switch {
	case n >= 1e17:
		return time.Unix(0, sign*n), nil
	case n >= 1e14:
		return time.UnixMicro(sign * n), nil
	case n >= 1e11:
		return time.UnixMilli(sign * n), nil
	}
	fraction, err := strconv.ParseInt((parts[3] + "000000000")[:9], 10, 64)
	return time.Unix(sign*n, sign*fraction), err
}

// calendarTime reads a date, with or without a time of day and an offset.
func calendarTime(s string, local *time.Location) (time.Time, error) {
	if len(s) > len(time.DateOnly) && strings.ContainsRune(" tT", rune(s[10])) {
		s = s[:10] + "T" + strings.ToUpper(strings.Replace(s[11:], " ", "", 1))
	}
	why := errNoTime
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05"} {
		for _, offset := range []string{"Z07:00", "Z0700", "Z07"} {
			t, err := time.Parse(layout+offset, s)
			if err == nil {
				return t, nil
			}
			why = outOfRange(why, err)
		}
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		wall, err := time.Parse(layout, s)
		if err == nil {
			return wallTime(wall, local, layout == time.DateOnly)
		}
		why = outOfRange(why, err)
	}
	return time.Time{}, why
}

// outOfRange keeps the first reason that is better than "not a time": that a day or an hour does not exist.
func outOfRange(why, err error) error {
	var p *time.ParseError
	if why == errNoTime && errors.As(err, &p) && p.Message != "" && !strings.Contains(p.Message, "extra text") {
		return errors.New(strings.TrimPrefix(p.Message, ": "))
	}
	return why
}

// wallTime returns the moment at which clocks in a location show the wall time, which is given in UTC. Where
// clocks are changed, they may show a time twice or never: that is an error, except for the begin of a day.
func wallTime(wall time.Time, local *time.Location, day bool) (time.Time, error) {
	var moments []time.Time
	var before time.Time // the moment by the smallest offset, which is that before clocks go forward
	for _, around := range []time.Duration{-26 * time.Hour, 0, 26 * time.Hour} {
		_, offset := wall.Add(around).In(local).Zone()
		t := wall.Add(-time.Duration(offset) * time.Second).In(local)
		if before.Before(t) {
			before = t
		}
		if t.Format(time.DateTime) == wall.Format(time.DateTime) && !slices.ContainsFunc(moments, t.Equal) {
			moments = append(moments, t)
		}
	}
	slices.SortFunc(moments, time.Time.Compare)
	switch {
	case len(moments) == 1 || len(moments) > 1 && day:
		return moments[0], nil
	case len(moments) > 1:
		return time.Time{}, fmt.Errorf("clocks are set back, so this time comes twice; write %s or %s", Text(moments[0]), Text(moments[1]))
	case day:
		begin, _ := before.ZoneBounds()
		return begin, nil
	}
	return time.Time{}, fmt.Errorf("clocks are set forward, so this time does not exist; write %s or a time with another offset", Text(before))
}

// Text writes a time for people: in its location with the offset, in a form that Parse reads.
func Text(t time.Time) string {
	return t.Format("2006-01-02T15:04:05.999999999Z07:00")
}
