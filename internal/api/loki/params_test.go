package loki

import (
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/read/logql"
)

// at is the time of the tests, in nanoseconds.
const at = int64(1_700_000_000_000_000_000)

func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
	}{
		{"0", 0},
		{"1", 1e9},
		{"1700000000", 1_700_000_000e9},
		{"9999999999", math.MaxInt64}, // 64 bits of nanoseconds end 775 million seconds before
		{"17000000000", 17_000_000_000},
		{"1700000000000000000", at},
		{"9223372036854775807", math.MaxInt64},
		{"-1", -1e9},
		{"-1700000000", -1_700_000_000},
		{"1700000000.5", at + 5e8},
		{"1700000000.57", at + 57e7},
		{"1700000000.0004", at},
		{".5", 5e8},
		{"1.e3", 1e12},
		{"123456789012345.", math.MaxInt64},
		{"-123456789012345.", math.MinInt64},
		{"2023-11-14T22:13:20Z", at},
		{"2023-11-14T22:13:20.123456789Z", at + 123456789},
		{"2023-11-14T23:13:20+01:00", at},
		{"9999-01-01T00:00:00Z", math.MaxInt64},
		{"0001-01-01T00:00:00Z", math.MinInt64},
	} {
		got, err := parseTime(c.text)
		if err != nil || got != c.want {
			t.Errorf("%s: %d, %v; want %d", c.text, got, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"x":                         `strconv.ParseInt: parsing "x": invalid syntax`,
		"1e3":                       `strconv.ParseInt: parsing "1e3": invalid syntax`,
		"92233720368547758080":      `strconv.ParseInt: parsing "92233720368547758080": value out of range`,
		"2023-11-14":                `strconv.ParseInt: parsing "2023-11-14": invalid syntax`,
		"1.2.3":                     `strconv.ParseInt: parsing "1.2.3": invalid syntax`,
		strings.Repeat("x", 10_000): `strconv.ParseInt: parsing "` + strings.Repeat("x", 200) + `": invalid syntax`,
	} {
		if got, err := parseTime(text); err == nil || err.Error() != want {
			t.Errorf("%.50s: %d, %v; want %s", text, got, err, want)
		}
	}
}

func TestBounds(t *testing.T) {
	const hour = int64(time.Hour)
	for query, want := range map[string][2]int64{
		"":                               {at - hour, at},
		"since=30m":                      {at - hour/2, at},
		"start=1600000000":               {1_600_000_000e9, at},
		"end=1600000000":                 {1_600_000_000e9 - hour, 1_600_000_000e9},
		"end=1600000000&since=2h":        {1_600_000_000e9 - 2*hour, 1_600_000_000e9},
		"end=1800000000":                 {at - hour, 1_800_000_000e9},
		"start=5&end=9&since=1m":         {5e9, 9e9},
		"end=0001-01-01T00:00:00Z":       {math.MinInt64, math.MinInt64},
		"start=&end=&since=":             {at - hour, at},
		"start=1700000000000000001&end=": {at + 1, at},
	} {
		form, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		start, end, err := bounds(form, at)
		if got := [2]int64{start, end}; err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", query, got, err, want)
		}
	}
}

func TestWindowErrors(t *testing.T) {
	for query, want := range map[string]string{
		"since=x":                 `could not parse 'since' parameter: not a valid duration string: "x"`,
		"start=x":                 `could not parse 'start' parameter: strconv.ParseInt: parsing "x": invalid syntax`,
		"end=x":                   `could not parse 'end' parameter: strconv.ParseInt: parsing "x": invalid syntax`,
		"start=2&end=1":           "end timestamp must not be before or equal to start time",
		"limit=x":                 `strconv.Atoi: parsing "x": invalid syntax`,
		"limit=0":                 "limit must be a positive value",
		"limit=-1":                "limit must be a positive value",
		"limit=4294967296":        "limit value 4294967296 is out of range [0, 4294967295]",
		"direction=up":            "invalid direction 'up'",
		"step=0":                  "zero or negative query resolution step widths are not accepted. Try a positive integer",
		"step=-1":                 "zero or negative query resolution step widths are not accepted. Try a positive integer",
		"step=x":                  `cannot parse "x" to a valid duration`,
		"step=1e300":              `cannot parse "1e300" to a valid duration. It overflows int64`,
		"step=NaN":                `cannot parse "NaN" to a valid duration. It overflows int64`,
		"step=0.3":                "exceeded maximum resolution of 11,000 points per time series. Try increasing the value of the step parameter",
		"interval=-1s":            `cannot parse "-1s" to a valid duration`,
		"interval=-1":             "interval must be >= 0",
		"interval=x&limit=0":      "limit must be a positive value", // the first of several
		"start=2&end=1&limit=0":   "end timestamp must not be before or equal to start time",
		"start=x&end=y&since=z":   `could not parse 'since' parameter: not a valid duration string: "z"`,
		"limit=0&direction=up":    "limit must be a positive value",
		"direction=up&step=0":     "invalid direction 'up'",
		"step=1h&interval=1e9999": `cannot parse "1e9999" to a valid duration`,
	} {
		form, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseWindow(form, at); err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %s", query, err, want)
		}
	}
}

func TestWindow(t *testing.T) {
	for query, want := range map[string]window{
		"": {at - 3600e9, at, 100, logql.Backward, 14e9, 0},
		"start=1&end=2&limit=5000&direction=forward&step=1m&interval=1.5": {1e9, 2e9, 5000, logql.Forward, 60e9, 15e8},
		"start=1&end=1&direction=BackWard&step=1e-9":                      {1e9, 1e9, 100, logql.Backward, 1, 0},
		"start=0001-01-01T00:00:00Z&end=9999-01-01T00:00:00Z":             {math.MinInt64, math.MaxInt64, 100, logql.Backward, 36893488 * int64(time.Second), 0},
	} {
		form, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseWindow(form, at)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", query, got, err, want)
		}
	}
}

// A time that a client has is read as the same, in every form.
func TestTimesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64Range(1e15, math.MaxInt64).Draw(t, "time")
		got, err := parseTime(time.Unix(0, want).UTC().Format(time.RFC3339Nano))
		if err != nil || got != want {
			t.Fatalf("%d, %v; want %d", got, err, want)
		}
		ns := want - want%1e9
		if got, err := parseTime(time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z07:00")); err != nil || got != ns {
			t.Fatalf("%d, %v; want %d", got, err, ns)
		}
	})
}

// FuzzWindow reads any parameters: what is accepted keeps its promises.
func FuzzWindow(f *testing.F) {
	for _, s := range [][6]string{
		{"", "", "", "", "", ""},
		{"1700000000", "1700000001.5", "100", "forward", "1m", "5"},
		{"2023-11-14T22:13:20Z", "9999999999", "5000", "BACKWARD", "1e9", "1h"},
		{"-9223372036854775808", "9223372036854775807", "4294967295", "up", "NaN", "Inf"},
		{"1e300.0", ".", "-1", "", "0x1p3", "1_0"},
	} {
		f.Add(s[0], s[1], s[2], s[3], s[4], s[5])
	}
	f.Fuzz(func(t *testing.T, start, end, limit, direction, step, interval string) {
		form := url.Values{"start": {start}, "end": {end}, "limit": {limit}, "direction": {direction}, "step": {step}, "interval": {interval}, "since": {interval}}
		w, err := parseWindow(form, at)
		if err != nil {
			if len(err.Error()) > 2000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if w.end < w.start || w.limit <= 0 || w.step <= 0 || w.interval < 0 || span(w.start, w.end)/w.step > maxPoints {
			t.Fatalf("%+v", w)
		}
	})
}
