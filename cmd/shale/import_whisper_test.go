package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shaledb/shale/internal/move/whisperimport"
)

// whisperFiles were made by the library whisper at this time. Of the 40, three are broken.
const (
	whisperFiles = "../../internal/move/whisperimport/testdata/plain/whisper"
	whisperAsOf  = "1700000000"
)

func importedWhisper(t *testing.T, want int, args ...string) (r whisperimport.Report, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"import", "whisper", "--json", "--quiet", "--as-of", whisperAsOf}, args...), &process{stdout: &out, stderr: &errs})
	if code != want {
		t.Fatalf("exit code %d, expected %d: %s%s", code, want, errs.String(), out.String())
	}
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
	}
	return r, errs.String()
}

func TestImportWhisper(t *testing.T) {
	server := startServer(t, "--max-age", "0", "--retention", "0")
	state := filepath.Join(t.TempDir(), "state")
	dry, _ := importedWhisper(t, exitOK, whisperFiles, "--address", server, "--dry-run")
	if dry.Files != 37 || dry.Skipped != 3 || dry.Future != 5 {
		t.Errorf("dry run: %+v", dry.Tally)
	}
	if _, err := os.Stat("shale-import.state"); err == nil {
		t.Error("a dry run has written a state file")
	}
	r, _ := importedWhisper(t, exitOK, whisperFiles, "--address", server, "--state", state, "--verify")
	v := r.Verification
	if r.Files != 37 || r.Skipped != 3 || v.Same != r.Points+r.Rollups || v.Same < 1500 || v.Missing+v.Different+v.More != 0 || v.Series != 37 {
		t.Errorf("%+v, %+v", r, v)
	}
	for _, why := range []string{"aggregation method 4294967295 is unknown", "the file is empty", "the file is truncated: "} {
		found := false
		for _, s := range r.SkippedList {
			found = found || strings.HasPrefix(s.Why, why)
		}
		if !found {
			t.Errorf("no file was skipped since %q: %+v", why, r.SkippedList)
		}
	}
	if r, _ = importedWhisper(t, exitOK, whisperFiles, "--address", server, "--state", state); r.Before != 40 || r.Requests != 0 || r.Files != 37 {
		t.Errorf("the second run: %+v", r)
	}
	if _, stderr := importedWhisper(t, exitFailed, whisperFiles, "--address", server, "--state", state, "--dialect", "go"); !strings.Contains(stderr, "is of another import") {
		t.Error(stderr)
	}
}

// A run that the server has refused in the middle goes on after the last file that was acknowledged.
func TestImportWhisperGoesOn(t *testing.T) {
	target, err := url.Parse(startServer(t, "--max-age", "0", "--retention", "0"))
	if err != nil {
		t.Fatal(err)
	}
	// The files of testdata fit in one request, so there are many copies of them.
	dir := t.TempDir()
	for _, copied := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		if err := os.CopyFS(filepath.Join(dir, copied), os.DirFS(whisperFiles)); err != nil {
			t.Fatal(err)
		}
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	var left atomic.Int64
	left.Store(2)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/api/v1/write" && left.Add(-1) < 0 {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		proxy.ServeHTTP(w, q)
	}))
	defer front.Close()
	state := filepath.Join(t.TempDir(), "state")
	args := []string{dir, "--address", front.URL, "--state", state, "--concurrency", "1"}
	first, stderr := importedWhisper(t, exitFailed, args...)
	if first.Files == 0 || first.Files >= 12*37 || !strings.Contains(stderr, "run the command again to go on") {
		t.Errorf("%+v %s", first.Tally, stderr)
	}
	left.Store(1 << 30)
	second, _ := importedWhisper(t, exitOK, append(args, "--verify")...)
	if second.Before != first.Files+first.Skipped || second.Files != 12*37 || second.Skipped != 12*3 || second.Verification.Same != second.Points+second.Rollups {
		t.Errorf("%+v %+v", second, second.Verification)
	}
}
