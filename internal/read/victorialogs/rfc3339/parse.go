package rfc3339

import (
	"time"
)

// Parse reads a time as VictoriaLogs writes it.
func Parse(text []byte) (int64, bool) {
	if t, ok := parseUTC(text); ok {
		return t, true
	}
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil || t.Before(time.Unix(0, -1<<63)) || t.After(time.Unix(0, 1<<63-1)) {
		return 0, false
	}
	return t.UnixNano(), true
}

// parseUTC reads a time such as 2006-01-02T15:04:05.123Z of the years 1970 to 2261. time.Parse, which reads
// all others, takes much of what a line costs.
func parseUTC(b []byte) (t int64, ok bool) {
	const seconds = len("2006-01-02T15:04:05")
	if len(b) <= seconds || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' || b[len(b)-1] != 'Z' {
		return 0, false
	}
	year, ok1 := digits(b[:4])
	month, ok2 := digits(b[5:7])
	day, ok3 := digits(b[8:10])
	hour, ok4 := digits(b[11:13])
	minute, ok5 := digits(b[14:16])
	second, ok6 := digits(b[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 || day > 28 && day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	nanos := int64(0)
	if part := b[seconds : len(b)-1]; len(part) > 0 {
		if nanos, ok = digits(part[1:]); !ok || part[0] != '.' || len(part) == 1 || len(part) > 10 {
			return 0, false
		}
		for range 10 - len(part) {
			nanos *= 10
		}
	}
	return ((daysTo(year, month, day)*24+hour)*60+minute)*60e9 + second*1e9 + nanos, true
}

func digits(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func daysIn(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysTo returns the days from 1970-01-01 to a day. Years are counted from March on, so that the day of a
// leap year is the last one.
func daysTo(year, month, day int64) int64 {
	if month <= 2 {
		year, month = year-1, month+12
	}
	return 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468
}
