package moment

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests need zones where the machine has none

	"github.com/shaledb/shale/internal/racetest"
)

// in returns the location of a name.
func in(t *testing.T, name string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestParseTime(t *testing.T) {
	berlin := in(t, "Europe/Berlin")
	now := time.Date(2026, 3, 1, 13, 0, 0, 0, berlin) // 12:00 UTC
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, berlin)
	for text, want := range map[string]time.Time{
		"now": now, "-1h30m": now.Add(-90 * time.Minute), "now-1h": now.Add(-time.Hour), "now+5m": now.Add(5 * time.Minute), "+5m": now.Add(5 * time.Minute),
		"2026-03-01T12:00:00Z": now, "2026-03-01T13:00:00.5+01:00": now.Add(500 * time.Millisecond), "2026-03-01 12:00Z": now,
		"2026-03-01T13:00+0100": now, "2026-03-01 13:00:00 +01": now, "2026-03-01t12:00:00z": now,
		"2026-03-01": day, "2026-03-01T13:00": now, "2026-03-01 13:00": now, "2026-03-01 13:00:00": now, "2026-03-01T13:00:00.25": now.Add(250 * time.Millisecond),
		"0": time.Unix(0, 0), "1772366400": now, "1772366400.25": now.Add(250 * time.Millisecond), "1772366400.001": now.Add(time.Millisecond),
		"1772366400.000000001": now.Add(1), "1772366400250": now.Add(250 * time.Millisecond), "1772366400000250": now.Add(250 * time.Microsecond),
		"1772366400000000250": now.Add(250), "4.035": time.UnixMilli(4035), "-5": time.Unix(-5, 0), "-1.5": time.UnixMilli(-1500),
	} {
		if got, err := Parse(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "write 2026-11-23", "yesterday": Forms, "1h": Forms, "now5m": Forms, "now-": Forms, "NaN": Forms, "inf": Forms, "1e300": Forms, "0x10": Forms,
		"--1h": Forms, "2026-3-1": Forms, "06:30": Forms, "2026-03-01 13:00 CET": Forms, "1772366400250.5": Forms, "2026-03-01T": Forms,
		"2026-02-30": "day out of range", "2026-03-01T25:00": "hour out of range", "2026-03-01T12:60:00Z": "minute out of range",
		"1066-10-14": "years 1678 to 2261", "9999-01-01": "years 1678 to 2261", "9999999999": "years 1678 to 2261",
		"2026-03-29T02:30": "does not exist; write 2026-03-29T03:30:00+02:00", "2026-10-25 02:30": "twice; write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00",
	} {
		if got, err := Parse(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v; want %s", text, got, err, want)
		}
	}
	// Clocks that are changed at midnight: a date is the first moment of its day.
	for zone, want := range map[string]string{"Africa/Cairo 2026-04-24": "2026-04-24T01:00:00+03:00", "America/Havana 2026-11-01": "2026-11-01T00:00:00-04:00"} {
		name, date, _ := strings.Cut(zone, " ")
		if got, err := Parse(date, now.In(in(t, name))); err != nil || Text(got) != want {
			t.Errorf("%s: %v, %v; want %s", zone, got, err, want)
		}
	}
}

// TestTimesAreReadAgain: what is shown can be put on the command line, and a local time without an offset is
// either the same moment or refused, because clocks show it twice.
func TestTimesAreReadAgain(t *testing.T) {
	racetest.SkipSerial(t)
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"} {
		l := in(t, zone)
		r := rand.New(rand.NewPCG(1, 2))
		for range 1_000 {
			at := time.Unix(r.Int64N(3_000_000_000), r.Int64N(3)*r.Int64N(1e9)).In(l)
			now := at.Add(-time.Duration(r.Int64N(1e18)))
			if got, err := Parse(Text(at), now); err != nil || !got.Equal(at) {
				t.Fatalf("%s: %s: %v, %v", zone, Text(at), got, err)
			}
			got, err := Parse(at.Format("2006-01-02 15:04:05.999999999"), now)
			if err != nil && strings.Contains(err.Error(), "twice") && strings.Contains(err.Error(), Text(at)) {
				continue
			}
			if err != nil || !got.Equal(at) {
				t.Fatalf("%s: %s without offset: %v, %v", zone, Text(at), got, err)
			}
			day, err := Parse(at.Format(time.DateOnly), now)
			if err != nil || day.After(at) || day.Format(time.DateOnly) != at.Format(time.DateOnly) || day.Add(-1).Format(time.DateOnly) == at.Format(time.DateOnly) {
				t.Fatalf("%s: the day of %s begins %v, %v", zone, Text(at), day, err)
			}
		}
	}
}

// FuzzParseTime: no text panics, and what is accepted can be shown and read again.
func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{"now-1h", "2026-03-29 02:30", "1772366400250", "2026-03-01T13:00:00.5+01:00", "-0", "nowx", "2026-03-01T24:00", "é"} {
		f.Add(seed)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := Parse(text, now)
		if err != nil {
			return
		}
		if got, err := Parse(Text(at), now); err != nil || !got.Equal(at) {
			t.Errorf("%q: %v, then %v, %v", text, at, got, err)
		}
	})
}
