package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/verify"
)

// forgetful takes every write and knows of nothing.
func forgetful(t *testing.T) (url string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/write" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestLoadNoticesLoss is the way of a test that kills the server: load with a state file, then verify by it.
func TestLoadNoticesLoss(t *testing.T) {
	url, state := forgetful(t), filepath.Join(t.TempDir(), "state")
	args := []string{"load", "remote-write", "--url", url + "/api/v1/write", "--query-url", url, "--json", "--state", state}
	shape := []string{"--targets", "2", "--metrics", "2", "--series", "5", "--rate", "0", "--rounds", "3", "--start", "-1h"}
	code, out, errs := shale(t, nil, append(args, shape...)...)
	var report struct {
		send.RemoteWriteReport
		Verified *verify.Samples `json:"verification"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitOK {
		t.Fatalf("code %d, %v: %s%s", code, err, out, errs)
	}
	if report.Acked != 60 || report.Series != 20 || report.Verified != nil || report.CPUSeconds <= 0 {
		t.Errorf("%s", out)
	}
	code, _, errs = shale(t, nil, append(args, shape...)...)
	if code != exitFailed || !strings.Contains(errs, "exists") {
		t.Errorf("a state file is overwritten: code %d: %s", code, errs)
	}
	code, out, errs = shale(t, nil, append(args, "--verify-only", "--verify", "7", "--verify-counts")...)
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitFailed || !strings.Contains(errs, "verification failed") {
		t.Fatalf("code %d, %v: %s%s", code, err, out, errs)
	}
	if v := report.Verified; v.Missing != 21 || v.Series != 7 || v.Short != 60 || v.CountedOf != 60 {
		t.Errorf("%s", out)
	}
}

func TestLoadVerifiesAtOnce(t *testing.T) {
	url := forgetful(t)
	code, out, errs := shale(t, nil, "load", "remote-write", "--url", url+"/api/v1/write", "--query-url", url, "--rate", "1000000", "--duration", "50ms", "--verify", "1", "--quiet")
	if code != exitFailed || !strings.Contains(out, "verification FAILED") || !strings.Contains(errs, "verification failed") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

func TestLoadUsage(t *testing.T) {
	for _, args := range [][]string{
		{"remote-write", "--value", "soup"}, {"remote-write", "--start", "soup"}, {"remote-write", "--targets", "0"},
		{"remote-write", "--url", "soup"}, {"remote-write", "--rate", "-1"}, {"remote-write", "--verify-only"},
		{"remote-write", "--protocol", "v3"}, {"remote-write", "--compression", "gzip"}, {"remote-write", "--emulate", "avalanche"},
		{"remote-write", "--relabel-jitter", "uniform"}, {"remote-write", "--relabel-jitter", "none:1s"}, {"remote-write", "--relabel-jitter", "soup:1s"},
		{"remote-write", "--relabel-jitter", "stagger:0"}, {"remote-write", "--ooo", "0.1"}, {"remote-write", "--ooo", "x:1s"}, {"remote-write", "--ooo", "2:1s"},
		{"remote-write", "--dup", "-1"}, {"remote-write", "--start-timestamps"}, {"remote-write", "--jitter", "1h"}, {"remote-write", "--verify-over", "soup"},
		{"remote-write", "--series-interval", "1ms"}, {"remote-write", "--exemplars", "2"},
		{"target", "--value-interval", "0"}, {"target", "--start", "soup"}, {"target", "--targets", "0"}, {"target", "--verify", "1", "--verify-from", "soup"},
		{"target", "--verify", "1", "--verify-until", "soup"}, {"target", "--verify", "1", "--verify-from", "-1s", "--verify-until", "-2s"},
		{"logs", "--mix", "soup"}, {"logs", "--rate", "-1"}, {"logs", "--span", "1h"}, {"logs", "--metadata", "2"}, {"logs", "--verify-only"}, {"logs", "--url", "soup"},
		{"logs", "--streams", "0"}, {"logs", "--from", "/nowhere"}, {"logs", "--format", "xml"}, {"logs", "--start", "soup"}, {"logs", "--mb", "1e99"},
		{"graphite", "--protocol", "soup"}, {"graphite", "--value", "histogram"}, {"graphite", "--protocol", "pickle", "--udp"},
		{"graphite", "--spawn-interval", "1s", "--rate", "5"}, {"graphite", "--spawn-jitter", "1s"},
		{"graphite", "--target", "soup"}, {"graphite", "--prefix", "a b"}, {"graphite", "--step", "500ms"},
	} {
		if code, out, errs := shale(t, nil, append([]string{"load"}, args...)...); code != exitUsage || errs == "" {
			t.Errorf("%v: code %d: %s%s", args, code, out, errs)
		}
	}
}

// TestLoadKinds runs a small load of each kind against a server that takes everything.
func TestLoadKinds(t *testing.T) {
	url := forgetful(t)
	for name, args := range map[string]string{
		"v2 is not understood":   "--protocol v2 --metadata --start-timestamps --value counter",
		"zstd, vmagent":          "--compression zstd --emulate vmagent --jitter 100ms",
		"churn":                  "--series-interval 2s --relabel-jitter uniform:1s --rollout-stagger 1s --no-stale-markers",
		"histograms":             "--value histogram-custom --exemplars 0.5",
		"tenants and scrapers":   "--tenants 3 --scrapers 2 --tenant x",
		"disorder":               "--ooo 0.5:1d --dup 0.5 --value-interval 30s",
		"several in a long time": "--start -1h --step 1m --relabel-jitter stagger:90s --series-interval 1h",
	} {
		args := append([]string{"load", "remote-write", "--url", url + "/api/v1/write", "--quiet", "--json", "--rate", "0", "--rounds", "5", "--targets", "2",
			"--metrics", "2", "--series", "5"}, strings.Fields(args)...)
		code, out, errs := shale(t, nil, args...)
		var report send.RemoteWriteReport
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitOK || report.Sent < 50 {
			t.Errorf("%s: code %d, %v: %s%s", name, code, err, out, errs)
		}
		// The server writes no header that counts what it has stored, so nothing of version 2 is.
		if v2 := strings.HasPrefix(name, "v2"); v2 != (report.Dropped == report.Sent) || v2 != (report.Misreported > 0) || !v2 && report.Acked != report.Sent {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestLoadWithoutServer: a load that gets no response fails.
func TestLoadWithoutServer(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	addr := strings.TrimPrefix(s.URL, "http://")
	for _, args := range [][]string{
		{"graphite", "--target", addr, "--agents", "1", "--metrics", "5"},
		{"remote-write", "--url", s.URL + "/api/v1/write", "--targets", "1", "--metrics", "2", "--series", "2"},
	} {
		code, out, errs := shale(t, nil, append(append([]string{"load"}, args...), "--quiet", "--duration", "300ms")...)
		if code != exitFailed || !strings.Contains(errs, "nothing could be sent: dial tcp") || !strings.Contains(out, "last error") {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
}

// TestLoadTarget serves for a moment, and verifies samples that were never scraped.
func TestLoadTarget(t *testing.T) {
	code, out, errs := shale(t, nil, "load", "target", "--listen", "127.0.0.1:0", "--duration", "50ms")
	if code != exitOK || !strings.Contains(out, "target: 10000 series, 0 scrapes") || !strings.Contains(errs, "10 targets of 1000 series") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	url := forgetful(t)
	code, out, errs = shale(t, nil, "load", "target", "--verify", "3", "--verify-over", "query", "--query-url", url, "--quiet")
	if code != exitFailed || !strings.Contains(out, "3 missing") || !strings.Contains(errs, "verification failed") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

// TestLoadWithoutPath: the URL of a server gets the path of the endpoint; any other URL stays.
func TestLoadWithoutPath(t *testing.T) {
	url := startServer(t)
	for _, args := range [][]string{
		{"load", "remote-write", "--targets", "1", "--metrics", "1", "--series", "2", "--rounds", "2", "--rate", "0"},
		{"load", "logs", "--mb", "0.1", "--streams", "2"},
	} {
		if code, out, errs := shale(t, nil, append(args, "--url", url, "--quiet")...); code != exitOK || strings.Contains(out, "last error") {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
	for _, text := range []string{"http://h/", "http://h/x", "ftp://h", "h:1", "soup", "http://[", ""} {
		if got := withPath(text, "/p"); got != text {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := withPath("http://h:1?a=b", "/p"); got != "http://h:1/p?a=b" {
		t.Error(got)
	}
}
