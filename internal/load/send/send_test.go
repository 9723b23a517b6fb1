package send

import (
	"net/http"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/load/wire"
)

func TestParseReading(t *testing.T) {
	text := "# HELP a b\n" + ReceivedMetric + "{proto=\"tcp x\"} 12\n" + ReceivedMetric + "{proto=\"udp\"} 1.5e+02\n" + ReceivedMetric + "_other 9\nprocess_start_time_seconds 1.7e+09\n"
	n, life, err := parseReading([]byte(text))
	if err != nil || n != 162 || life != 1.7e9 {
		t.Errorf("%d, %v, %v", n, life, err)
	}
	for _, bad := range []string{"", "up 1\n", ReceivedMetric + " x\n"} {
		if _, _, err := parseReading([]byte(bad)); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestFates(t *testing.T) {
	names := map[fate]string{stored: "stored", again: "again", repack: "repack", refused: "refused"}
	for _, c := range []struct {
		emulate  Emulation
		zip      wire.Compression
		retry429 bool
		want     string // for 200, 204, 302, 400, 404, 409, 413, 415, 429, 500, 503
	}{
		{Prometheus, wire.Snappy, false, "stored stored refused refused refused refused refused refused refused again again"},
		{Prometheus, wire.Snappy, true, "stored stored refused refused refused refused refused refused again again again"},
		{Prometheus, wire.Zstd, false, "stored stored refused refused refused refused refused refused refused again again"},
		{VMAgent, wire.Snappy, false, "stored stored again refused again refused again refused again again again"},
		{VMAgent, wire.Zstd, false, "stored stored again repack again refused again repack again again again"},
	} {
		got := ""
		for _, code := range []int{200, 204, 302, 400, 404, 409, 413, 415, 429, 500, 503} {
			got += " " + names[c.emulate.fate(code, c.zip, c.retry429)]
		}
		if got[1:] != c.want {
			t.Errorf("%v %v %v:\n got %s\nwant %s", c.emulate, c.zip, c.retry429, got[1:], c.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	const s = time.Second
	ask := []time.Duration{0, 0, 10 * s, 0, 0, 0, 0, 0, 0, 0}
	for e, want := range map[Emulation][]time.Duration{
		Prometheus: {30e6, 60e6, 10 * s, 5 * s, 5 * s, 5 * s, 5 * s, 5 * s, 5 * s, 5 * s},
		VMAgent:    {s, 2 * s, 10 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s},
	} {
		b := backoff{Emulation: e, seed: 5}
		for range 2 { // each body starts at the shortest wait
			b.begin()
			for i, asked := range ask {
				if got := b.wait(asked); got < want[i] || got > want[i]+want[i]/10 {
					t.Errorf("%v, attempt %d: %v, want %v and at most a tenth more", e, i, got, want[i])
				}
			}
		}
	}
	x, y := backoff{seed: 1}, backoff{seed: 2}
	x.begin()
	y.begin()
	if x.wait(0) == y.wait(0) {
		t.Error("two shards wait equally long")
	}
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "-3": 0, "soon": 0, "99999999999999": 0,
		now.Add(7 * time.Second).Format(http.TimeFormat): 7 * time.Second, now.Add(-time.Hour).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}
