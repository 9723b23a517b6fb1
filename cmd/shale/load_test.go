package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/load"
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
	var report load.Report
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
		{"graphite", "--target", "soup"}, {"graphite", "--prefix", "a b"}, {"graphite", "--step", "500ms"},
	} {
		if code, out, errs := shale(t, nil, append([]string{"load"}, args...)...); code != exitUsage || errs == "" {
			t.Errorf("%v: code %d: %s%s", args, code, out, errs)
		}
	}
}
