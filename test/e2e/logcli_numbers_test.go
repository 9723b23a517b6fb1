//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sampled is a series as logcli prints it: with one value, or with several.
type sampled struct {
	Metric map[string]string
	Value  [2]any
	Values [][2]any
}

// first returns the first value of a series.
func (s *sampled) first(t *testing.T) float64 {
	t.Helper()
	v := s.Value
	if len(s.Values) > 0 {
		v = s.Values[0]
	}
	n, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// numbers runs a command that prints series, and returns their sums by the value of a label.
func (c logcli) numbers(t *testing.T, label string, args ...string) map[string]float64 {
	t.Helper()
	var all []sampled
	if err := json.Unmarshal([]byte(strings.Join(c.run(t, args...), "\n")), &all); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	sums := make(map[string]float64)
	for i := range all {
		s := &all[i]
		if len(s.Values) < 2 {
			sums[s.Metric[label]] += s.first(t)
			continue
		}
		for _, v := range s.Values {
			sums[s.Metric[label]] += (&sampled{Value: v}).first(t)
		}
	}
	return sums
}

// TestLogcliNumbers lets Loki's own client ask for numbers, volumes, statistics and fields.
func TestLogcliNumbers(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about logs")
	}
	c := newLogcli(t, func() string {
		s := newServer(t, t.TempDir())
		s.start()
		return s.url()
	})
	lines := linesOfTwoApps(time.Now())
	pushLines(t, c.url, lines)
	count, bytes := make(map[string]float64), make(map[string]float64)
	for _, l := range lines {
		count[l.app]++
		bytes[l.app] += float64(len(l.text))
	}
	same := func(t *testing.T, got, want map[string]float64) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	const all = `{job="logcli"}`
	t.Run("instant-query", func(t *testing.T) {
		same(t, c.numbers(t, "app", "instant-query", `sum by (app) (count_over_time(`+all+`[1h]))`), count)
		same(t, c.numbers(t, "app", "instant-query", `sum by (app) (bytes_over_time(`+all+`[1h]))`), bytes)
		same(t, c.numbers(t, "", "instant-query", `vector(2)^3`), map[string]float64{"": 8})
	})
	t.Run("query", func(t *testing.T) {
		same(t, c.numbers(t, "app", "query", `sum by (app) (count_over_time(`+all+`[30s]))`, "--step", "30s"), count)
		c.refused(t, "exceeded maximum resolution of 11,000 points per time series", "query", `rate(`+all+`[1s])`, "--step", "1s", "--since", "24h")
	})
	t.Run("volume", func(t *testing.T) {
		same(t, c.numbers(t, "app", "volume", `{job="logcli",app=~".+"}`), bytes)
		largest := "db"
		if bytes["web"] > bytes["db"] {
			largest = "web"
		}
		same(t, c.numbers(t, "app", "volume", `{job="logcli",app=~".+"}`, "--limit", "1"), map[string]float64{largest: bytes[largest]})
		same(t, c.numbers(t, "app", "volume", all, "--targetLabels", "app"), bytes)
		got := c.numbers(t, "job", "volume", all, "--aggregateByLabels")
		same(t, got, map[string]float64{"": 3 * (bytes["web"] + bytes["db"])}) // app, job and service_name
	})
	t.Run("volume_range", func(t *testing.T) {
		same(t, c.numbers(t, "app", "volume_range", `{job="logcli",app=~".+"}`, "--step", "30s"), bytes)
	})
	t.Run("stats", func(t *testing.T) {
		got := strings.Join(c.run(t, "stats", all), " ")
		for _, want := range []string{"streams: 2", fmt.Sprint("entries: ", len(lines))} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %q", want, got)
			}
		}
	})
	t.Run("detected-fields", func(t *testing.T) {
		got := strings.Join(c.run(t, "detected-fields", all), " ")
		for _, want := range []string{"status", "took", "path"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %q", want, got)
			}
		}
	})
}
