package config

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "17": 17, "17B": 17, "1KiB": 1024, "1.5MiB": 3 << 19, "2GiB": 2 << 30, "3 TiB": 3 << 40, "1KB": 1000, "1kB": 1000, "2GB": 2e9,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "B", "MiB", "-1", "1XB", "0x10", "1e3", "NaN", "inf", "1 2", "9999999TiB", "1_000", "5%"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "30d": 30 * day, "1h30m": 90 * time.Minute, "1y": 365 * day, "2w": 14 * day, "250ms": 250 * time.Millisecond, "1d12h5s1ms": 36*time.Hour + 5*time.Second + time.Millisecond,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "d", "-1d", "1.5h", "1m1h", "1d1d", "1 d", "300y", "99999999999999999999s", "1h!", "1µs"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestTextsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := Size(rapid.Int64Range(0, math.MaxInt64).Draw(t, "size"))
		if size > 1<<52 {
			size &^= 1<<12 - 1 // a float64 holds only round sizes exactly
		}
		var sizeBack Size
		if err := sizeBack.UnmarshalText([]byte(size.String())); err != nil || sizeBack != size {
			t.Fatalf("%d became %s, which is read as %d (%v)", size, size, sizeBack, err)
		}
		d := Duration(rapid.Int64Range(0, math.MaxInt64/1_000_000).Draw(t, "ms") * 1e6)
		var dBack Duration
		if err := dBack.UnmarshalText([]byte(d.String())); err != nil || dBack != d {
			t.Fatalf("%d became %s, which is read as %d (%v)", d, d, dBack, err)
		}
		share := Share{percent: float64(rapid.IntRange(1, 1000).Draw(t, "tenths")) / 10}
		var shareBack Share
		if err := shareBack.UnmarshalText([]byte(share.String())); err != nil || shareBack != share {
			t.Fatalf("%v became %s, which is read as %v (%v)", share, share, shareBack, err)
		}
	})
}
