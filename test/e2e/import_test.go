//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/shaledb/shale/internal/client"
)

// TestImportOfPrometheus moves a running Prometheus: its snapshot is imported into a new server, which then
// has all samples of the Prometheus, bit for bit.
func TestImportOfPrometheus(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about a command of Shale")
	}
	dir := t.TempDir()
	s := newServer(t, dir)
	s.start()
	from := time.Now().Add(-time.Minute)
	_, promURL := startCurrent(t, dir, s)
	time.Sleep(min(*duration, 10*time.Second))
	to := time.Now().Add(-time.Second).Truncate(time.Second)
	resp, err := http.Post(promURL+"/api/v1/admin/tsdb/snapshot", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var made struct{ Data struct{ Name string } }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.Data.Name == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	fresh := newServer(t, other)
	fresh.start()
	out, err := exec.Command(fresh.program, "import", "tsdb", filepath.Join(dir, "current-tsdb", "snapshots", made.Data.Name), "--address", fresh.url(),
		"--state", filepath.Join(dir, "import.state"), "--verify").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	want, err := allSeries(promURL, from, to)
	if err != nil {
		t.Fatal(err)
	}
	got, err := allSeries(fresh.url(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := summary(diffTexts(want, got)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d series are the same on both sides (%s)", len(want), count(want))
}

// TestKillImport kills an import with SIGKILL twice, each time after it has saved more progress, and
// runs it again. Everything is there once, and the last run goes on where the state file says.
func TestKillImport(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about a command of Shale")
	}
	dir := t.TempDir()
	blocks := filepath.Join(dir, "blocks")
	const series, samples = 400, 1500
	begin := time.Now().Add(-3 * time.Hour).UnixMilli()
	w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), blocks, int64(48*time.Hour/time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	app := w.Appender(context.Background())
	for s := range series {
		l := labels.FromStrings("__name__", "killed", "series", fmt.Sprint(s))
		for i := range samples {
			if _, err := app.Append(0, l, begin+1000*int64(i), float64(s*samples+i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, dir)
	s.start()
	state := filepath.Join(dir, "import.state")
	args := []string{"import", "tsdb", blocks, "--address", slowed(t, s.url()), "--state", state, "--concurrency", "1", "--json", "--quiet"}
	var saved int64
	for range 2 {
		c := exec.Command(s.program, args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		before := saved
		for began := time.Now(); saved == before && time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
			saved = savedSamples(t, state)
		}
		_ = c.Process.Kill()
		if c.Wait() == nil || saved == before {
			t.Fatalf("the import has ended, or has saved nothing: %d samples in the state file", saved)
		}
	}
	saved = savedSamples(t, state)
	out, err := exec.Command(s.program, append(args, "--verify")...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var report struct {
		Floats       int64 `json:"floats"`
		Verification struct {
			Same int64 `json:"samples_same"`
			More int64 `json:"samples_more"`
		} `json:"verification"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d samples were in the state file, the last run sent %d", saved, series*samples, report.Floats)
	// A series in the middle of which a run was killed is sent, and counted, once more.
	if left := series*samples - saved; saved == 0 || report.Floats < left || report.Floats > left+3*samples {
		t.Errorf("the last run sent %d samples, and %d were left", report.Floats, left)
	}
	if v := report.Verification; v.Same != series*samples || v.More != 0 {
		t.Errorf("%+v", report)
	}
	text, err := (&client.Server{URL: s.url()}).Get(t.Context(), "api/v1/query", url.Values{"query": {"sum(count_over_time(killed[1d]))"}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got.Data.Result) != 1 || got.Data.Result[0].Value[1] != fmt.Sprint(series*samples) {
		t.Errorf("%s, %v", text, err)
	}
}

// slowed returns the URL of a proxy that delays requests, so that an import takes seconds.
func slowed(t *testing.T, server string) string {
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of requests that a kill cuts off
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// savedSamples returns how many samples the state file of an import has.
func savedSamples(t *testing.T, path string) (n int64) {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	var state struct {
		Blocks map[string]struct{ Samples int64 }
	}
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range state.Blocks {
		n += b.Samples
	}
	return n
}
