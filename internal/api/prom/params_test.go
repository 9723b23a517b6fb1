package prom

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTimesToTheMillisecond checks that a time with milliseconds, as clients print it, is that very
// millisecond.
func TestTimesToTheMillisecond(t *testing.T) {
	for ms := range int64(1000) {
		checkMillis(t, 1_700_000_000_000+ms)
		checkMillis(t, ms)
	}
	rapid.Check(t, func(t *rapid.T) { checkMillis(t, rapid.Int64Range(-9e12, 9e12).Draw(t, "ms")) })
}

func checkMillis(t rapid.TB, ms int64) {
	sign, abs := "", ms
	if ms < 0 {
		sign, abs = "-", -ms
	}
	text := fmt.Sprintf("%s%d.%03d", sign, abs/1000, abs%1000)
	got, err := parseTime(text)
	if err != nil || got.UnixMilli() != ms || got.Nanosecond()%1e6 != 0 {
		t.Fatalf("%s: %d %v", text, got.UnixNano(), err)
	}
	if got, err = parseTime(time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)); err != nil || got.UnixMilli() != ms {
		t.Fatalf("%d: %v %v", ms, got, err)
	}
}

func TestTimesSaturate(t *testing.T) {
	for s, want := range map[string]int64{
		"1e300": math.MaxInt64, "-1e300": math.MinInt64, "1e400": math.MaxInt64, "-1e400": math.MinInt64, "Inf": math.MaxInt64, "-inf": math.MinInt64,
		"9999-01-01T00:00:00Z": math.MaxInt64, "0001-01-01T00:00:00Z": math.MinInt64, "9223372036.854775807": math.MaxInt64,
		upstreamMinTime: math.MinInt64, upstreamMaxTime: math.MaxInt64, "0": 0, "-0": 0, "1e-300": 0, "0.0004": 0, "0.0005": 1e6, "-0.0005": -1e6,
	} {
		if got, err := parseTime(s); err != nil || got.UnixNano() != want {
			t.Errorf("%s: %d %v, want %d", s, got.UnixNano(), err, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"1": time.Second, "0.001": time.Millisecond, "1e-9": 1, "-1": -time.Second, "1m": time.Minute, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour,
		"1y": 365 * 24 * time.Hour, "5ms": 5 * time.Millisecond, "9223372036": 9223372036 * time.Second,
	} {
		if got, err := parseDuration(s); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "NaN", "Inf", "-Inf", "1e300", "9223372037", "1m1h", "1 m", "300y"} {
		if got, err := parseDuration(s); err == nil {
			t.Errorf("%q is %s", s, got)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"0", "1e300", "-Inf", "NaN", "2020-01-01T00:00:00+23:59", upstreamMinTime, "1_0", "0x1p-1074", "9223372036.8547758", "9223372036.854775"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseTime(s)
		if err == nil && (got.Before(minTime) || got.After(maxTime)) {
			t.Fatalf("%q: %s", s, got)
		}
		_, _ = parseDuration(s)
	})
}
