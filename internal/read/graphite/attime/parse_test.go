package attime

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/shaledb/shale/internal/model"
)

// The wanted times are those of graphite-web 1.1.10.
func TestParse(t *testing.T) {
	zones := map[string]*time.Location{"": time.UTC}
	for _, name := range []string{"Europe/Berlin", "America/New_York"} {
		z, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		zones[name] = z
	}
	now := time.Date(2021, 3, 24, 17, 45, 12, 0, time.UTC) // a Wednesday
	for _, c := range []struct{ text, zone, want string }{
		{"now", "", "2021-03-24T17:45:12Z"},
		{"", "", "2021-03-24T17:45:12Z"},
		{"1616608312", "", "2021-03-24T17:51:52Z"},
		{"0", "", "1970-01-01T00:00:00Z"},
		{"-1d", "", "2021-03-23T17:45:12Z"},
		{"-5min", "", "2021-03-24T17:40:12Z"},
		{"now-1h30min", "", "2021-03-24T16:15:12Z"},
		{"+1w", "", "2021-03-31T17:45:12Z"},
		{"-1mon", "", "2021-02-22T17:45:12Z"},
		{"-1y", "", "2020-03-24T17:45:12Z"},
		{"midnight", "", "2021-03-24T00:00:00Z"},
		{"noon yesterday", "", "2021-03-23T12:00:00Z"},
		{"teatime_tomorrow", "", "2021-03-25T16:00:00Z"},
		{"today", "", "2021-03-24T00:00:00Z"},
		{"10:30", "", "2021-03-24T10:30:00Z"},
		{"10:30pm", "", "2021-03-24T22:30:00Z"},
		{"5pm", "", "2021-03-24T17:00:00Z"},
		{"11am+1d", "", "2021-03-25T11:00:00Z"},
		{"04:00_20110501", "", "2011-05-01T04:00:00Z"},
		{"20110501", "", "2011-05-01T00:00:00Z"},
		{"12:30 06/12/10", "", "2010-06-12T12:30:00Z"},
		{"06/12/2010", "", "2010-06-12T00:00:00Z"},
		{"06/12/65", "", "2065-06-12T00:00:00Z"},
		{"jan8", "", "2021-01-08T00:00:00Z"},
		{"january 25", "", "2021-01-25T00:00:00Z"},
		{"monday", "", "2021-03-22T00:00:00Z"},
		{"noon wednesday", "", "2021-03-24T12:00:00Z"},
		{"thursday", "", "2021-03-18T00:00:00Z"},
		{"midnight-1d", "", "2021-03-23T00:00:00Z"},
		{"midnight", "Europe/Berlin", "2021-03-24T00:00:00+01:00"},
		{"2:30_20210328", "Europe/Berlin", "2021-03-28T03:30:00+02:00"},
		{"midnight+5d", "Europe/Berlin", "2021-03-29T01:00:00+02:00"},
		{"2:30_20211031", "Europe/Berlin", "2021-10-31T02:30:00+01:00"},
		{"1:30_20211107", "America/New_York", "2021-11-07T01:30:00-05:00"},
	} {
		got, err := Parse(c.text, now.In(zones[c.zone]))
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if s := got.Format(time.RFC3339); s != c.want {
			t.Errorf("%q in %s: got %s, want %s", c.text, c.zone, s, c.want)
		}
	}
	for _, text := range []string{"5min", "-1m", "-5", "noonish", "25:00", "10:77", "13/40/10", "jan", "feb30", "x", "-1d2", "99999999999999999999", "-999999999y", "1:", "20111301-1x"} {
		if got, err := Parse(text, now); err == nil || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestParseOffset(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
	}{{"", 0}, {"5min", 300}, {"-1d12h", -129600}, {"+2weeks", 1209600}, {"1mon1y", 34128000}, {"10s", 10}} {
		if got, err := ParseOffset(c.text); err != nil || got != c.want {
			t.Errorf("%q: %d, %v", c.text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"-1d", "noon yesterday", "04:00_20110501", "jan 8", "12/31/99+5min", "monday"} {
		f.Add(s, int64(1616608312))
	}
	f.Fuzz(func(t *testing.T, s string, now int64) {
		at, err := Parse(s, time.Unix(now%maxSeconds, 0).UTC())
		if err != nil {
			if !errors.Is(err, model.ErrInvalid) {
				t.Fatalf("class of %v", err)
			}
			return
		}
		if at.Unix() > 2*maxSeconds || at.Year() > 9999 {
			t.Fatalf("%q is %v", s, at)
		}
	})
}
