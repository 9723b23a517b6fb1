package rfc3339

import (
	"strings"
	"testing"
	"time"
)

// FuzzTime: times are read as time.Parse reads them.
func FuzzTime(f *testing.F) {
	for _, s := range []string{
		"2025-11-24T16:00:00Z", "2025-11-24T16:00:00.5Z", "2024-02-29T23:59:59.999999999Z", "2100-02-29T00:00:00Z", "1970-01-01T00:00:00Z",
		"2261-12-31T23:59:59.9Z", "2262-04-11T23:47:16.854775807Z", "1969-12-31T23:59:59Z", "2025-13-01T00:00:00Z", "2025-04-31T00:00:00Z",
		"2025-11-24T24:00:00Z", "2025-11-24T16:00:60Z", "2025-11-24T16:00:00+01:00", "2025-11-24T16:00:00.Z", "2025-11-24T16:00:00.1234567891Z",
		"2025-11-24t16:00:00z", "2025-11-24", "", "x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseUTC([]byte(text))
		want, err := time.Parse(time.RFC3339Nano, text)
		if ok && (err != nil || want.UnixNano() != got) {
			t.Errorf("%q is read as %d, should be %v, %v", text, got, want, err)
		}
		if strings.HasSuffix(text, "Z") && err == nil && want.Year() >= 1970 && want.Year() <= 2261 && len(text) <= 30 && !strings.Contains(text, ",") && !ok {
			if len(text) >= 20 && text[13] == ':' { // time.Parse takes hours of one digit
				t.Errorf("%q is not read", text)
			}
		}
	})
}
