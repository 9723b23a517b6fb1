package line

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// addTimes adds dates. Where no zone is named it is that of the process.
func (t *textTemplate) addTimes(m template.FuncMap) {
	m["now"] = time.Now
	m["date"] = func(layout string, date any) (string, error) {
		return toTime(date).In(time.Local).Format(layout), t.spend(16 * len(layout))
	}
	m["toDate"] = func(layout, s string) time.Time {
		d, _ := time.ParseInLocation(layout, s, time.Local)
		return d
	}
	zones := map[string]*time.Location{} // loading one reads a file
	m["toDateInZone"] = func(layout, zone, s string) time.Time {
		loc := zones[zone]
		if loc == nil {
			var err error
			if loc, err = time.LoadLocation(zone); err != nil {
				loc = time.UTC
			}
			if len(zones) < 64 {
				zones[strings.Clone(zone)] = loc
			}
		}
		d, _ := time.ParseInLocation(layout, s, loc)
		return d
	}
	m["unixEpoch"] = func(d time.Time) string { return strconv.FormatInt(d.Unix(), 10) }
	m["unixEpochMillis"] = func(d time.Time) string { return strconv.FormatInt(d.UnixMilli(), 10) }
	m["unixEpochNanos"] = func(d time.Time) string { return strconv.FormatInt(d.UnixNano(), 10) }
	m["unixToTime"] = unixToTime
}

// toTime takes a number as Unix seconds, and anything but a time as now.
func toTime(v any) time.Time {
	switch v := v.(type) {
	case time.Time:
		return v
	case *time.Time:
		return *v
	case int64:
		return time.Unix(v, 0)
	case int:
		return time.Unix(int64(v), 0)
	case int32:
		return time.Unix(int64(v), 0)
	}
	return time.Now()
}

// unixToTime reads a Unix time, whose unit its length tells.
func unixToTime(s string) (time.Time, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil {
		switch len(s) {
		case 5: // days
			return time.Unix(n*86400, 0), nil
		case 10:
			return time.Unix(n, 0), nil
		case 13:
			return time.Unix(0, n*1e6), nil
		case 16:
			return time.Unix(0, n*1e3), nil
		case 19:
			return time.Unix(0, n), nil
		}
	}
	return time.Time{}, fmt.Errorf("unable to parse time '%v': %w", s, err)
}
