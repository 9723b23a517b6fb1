package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/move/tsdbimport"
)

// writeBlock writes a block of Prometheus below dir by Prometheus's own writer, and returns its folder.
func writeBlock(t *testing.T, dir string, fill func(app storage.Appender) error) string {
	t.Helper()
	w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), dir, int64(48*time.Hour/time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	app := w.Appender(t.Context())
	if err := fill(app); err != nil {
		t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	id, err := w.Flush(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, id.String())
}

// oddFloats are values whose bits are easily lost.
var oddFloats = []uint64{
	math.Float64bits(math.Copysign(0, -1)), 0, math.Float64bits(1.5), 0x7ff0000000000001, 0x7ff8000000000123, value.StaleNaN, value.NormalNaN,
	math.Float64bits(math.Inf(-1)), math.Float64bits(math.MaxFloat64), 1,
}

// fillKinds appends every kind of sample, n of each series, a second apart from a time in milliseconds on.
func fillKinds(from int64, n int) func(app storage.Appender) error {
	return func(app storage.Appender) error {
		for i := range int64(n) {
			at := from + 1000*i
			if _, err := app.Append(0, labels.FromStrings("__name__", "odd", "zone", "a"), at, math.Float64frombits(oddFloats[i%int64(len(oddFloats))])); err != nil {
				return err
			}
			integer, float := tsdbutil.GenerateTestHistogram(i), tsdbutil.GenerateTestFloatHistogram(i)
			integer.Sum = math.Copysign(0, -1)
			custom, gauge := tsdbutil.GenerateTestCustomBucketsHistogram(i), tsdbutil.GenerateTestGaugeHistogram(i)
			if i == int64(n)-1 {
				integer = &histogram.Histogram{Sum: math.Float64frombits(value.StaleNaN)}
				float = &histogram.FloatHistogram{Sum: math.Float64frombits(value.StaleNaN)}
			}
			for name, h := range map[string]*histogram.Histogram{"integer": integer, "custom": custom, "gauge": gauge} {
				if _, err := app.AppendHistogram(0, labels.FromStrings("__name__", name), at, h, nil); err != nil {
					return err
				}
			}
			if _, err := app.AppendHistogram(0, labels.FromStrings("__name__", "float"), at, nil, float); err != nil {
				return err
			}
		}
		return nil
	}
}

// fillMany appends n samples of each of many series.
func fillMany(from int64, series, n int) func(app storage.Appender) error {
	return func(app storage.Appender) error {
		for s := range series {
			l := labels.FromStrings("__name__", "many", "series", fmt.Sprint(s))
			for i := range n {
				if _, err := app.Append(0, l, from+1000*int64(i), float64(s*n+i)); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// imported runs an import and returns its report.
func imported(t *testing.T, want int, args ...string) (r tsdbimport.Report, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"import", "tsdb", "--json", "--quiet"}, args...), &process{stdout: &out, stderr: &errs})
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

func recently() int64 { return time.Now().Add(-3 * time.Hour).UnixMilli() }

// TestImportIsExact imports every kind of sample, reads it back, and imports it once more.
func TestImportIsExact(t *testing.T) {
	url, dir, from := startServer(t), t.TempDir(), recently()
	writeBlock(t, dir, fillKinds(from, 200))
	state := filepath.Join(t.TempDir(), "state")
	r, _ := imported(t, exitOK, dir, "--address", url, "--state", state, "--verify")
	if r.Imported != 1 || r.Floats != 200 || r.Histograms != 800 || r.Verification.Same != 1000 || r.Verification.More != 0 {
		t.Errorf("%+v %+v", r, r.Verification)
	}
	got, err := (&client.Server{URL: url}).RemoteRead(t.Context(), []*prompb.LabelMatcher{{Name: "__name__", Value: "odd"}}, 0, math.MaxInt64/2)
	if err != nil || len(got) != 1 || len(got[0].Values) != 200 {
		t.Fatalf("%v, %v", got, err)
	}
	for i, s := range got[0].Values {
		if want := oddFloats[i%len(oddFloats)]; s.Bits != want || s.Ms != from+1000*int64(i) {
			t.Errorf("sample %d has the bits %016x at %d, expected %016x", i, s.Bits, s.Ms, want)
		}
	}
	r, _ = imported(t, exitOK, dir, "--address", url, "--state", state, "--verify")
	if r.Before != 1 || r.Requests != 0 {
		t.Errorf("the second run: %+v", r)
	}
	_, stderr := imported(t, exitFailed, dir, "--address", url, "--state", state, "--tenant", "other")
	if !strings.Contains(stderr, "is of another import") {
		t.Error(stderr)
	}
}

// TestImportFindsDifferences: a sample that the server has with another value is reported.
func TestImportFindsDifferences(t *testing.T) {
	url, from := startServer(t), recently()
	one, two, state := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "state")
	writeBlock(t, one, fillMany(from, 2, 10))
	imported(t, exitOK, one, "--address", url, "--state", state)
	writeBlock(t, two, func(app storage.Appender) error {
		_, err := app.Append(0, labels.FromStrings("__name__", "many", "series", "1"), from+3000, -1)
		return err
	})
	imported(t, exitOK, two, "--address", url, "--state", filepath.Join(t.TempDir(), "state"))
	r, _ := imported(t, exitFailed, one, "--address", url, "--state", state, "--verify")
	if v := r.Verification; v.Same != 19 || v.Different != 1 || len(v.Examples) != 1 || !strings.Contains(v.Examples[0], "expected 13") {
		t.Errorf("%+v", v)
	}
}

// thanos adds what Thanos adds to a meta.json.
func thanos(t *testing.T, block string, external map[string]string, resolution int64) {
	t.Helper()
	path := filepath.Join(block, "meta.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var meta map[string]any
	if err := json.Unmarshal(text, &meta); err != nil {
		t.Fatal(err)
	}
	meta["thanos"] = map[string]any{"labels": external, "downsample": map[string]any{"resolution": resolution}, "source": "sidecar", "version": 1}
	if text, err = json.Marshal(meta); err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestImportOfThanos: external labels are added, but not that of replicas; overlapping blocks of replicas
// become one series; samples that a tombstone hides stay away, as do downsampled and deleted blocks.
func TestImportOfThanos(t *testing.T) {
	url, dir, from := startServer(t), t.TempDir(), recently()
	for i, replica := range []string{"a", "b"} {
		thanos(t, writeBlock(t, dir, fillMany(from+500*int64(i), 3, 100)), map[string]string{"cluster": "eu", "replica": replica}, 0)
	}
	thanos(t, writeBlock(t, dir, fillMany(from-1000_000, 3, 10)), map[string]string{"cluster": "eu", "replica": "a"}, 300_000)
	marked := writeBlock(t, dir, fillMany(from-2000_000, 3, 10))
	thanos(t, marked, map[string]string{"cluster": "eu"}, 0)
	if err := os.WriteFile(filepath.Join(marked, "deletion-mark.json"), []byte(`{"id":"x","deletion_time":1,"version":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	deleted := writeBlock(t, dir, fillMany(from-3000_000, 3, 10))
	b, err := tsdb.OpenBlock(nil, deleted, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), from-3000_000+2000, from-3000_000+4000, labels.MustNewMatcher(labels.MatchEqual, "series", "1")); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	r, _ := imported(t, exitOK, dir, "--address", url, "--state", filepath.Join(t.TempDir(), "state"), "--verify", "--drop-label", "replica", "--tenant", "team")
	if r.Imported != 3 || len(r.LeftOut) != 2 || r.Floats != 600+27 || r.Verification.Same != 627 {
		t.Errorf("%+v %+v", r, r.Verification)
	}
	for selector, want := range map[string]float64{`{cluster="eu"}`: 600, `{replica=~".+"}`: 0, `{cluster=""}`: 27} {
		if got := countSamples(t, url, "team", "many"+selector); got != want {
			t.Errorf("%s: %v samples, expected %v", selector, got, want)
		}
	}
}

// countSamples counts the samples of the last day.
func countSamples(t *testing.T, server, tenant, selector string) (n float64) {
	t.Helper()
	text, err := (&client.Server{URL: server, Tenant: tenant}).Get(t.Context(), "api/v1/query", url.Values{"query": {"sum(count_over_time(" + selector + "[1d]))"}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, r := range got.Data.Result {
		if _, err := fmt.Sscan(r.Value[1].(string), &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// TestImportOfMimir: each folder is a tenant.
func TestImportOfMimir(t *testing.T) {
	url, dir, from := startServer(t), t.TempDir(), recently()
	for i, tenant := range []string{"team-a", "team-b"} {
		thanos(t, writeBlock(t, filepath.Join(dir, tenant), fillMany(from, 1+i, 10)), map[string]string{"__org_id__": tenant, "__compactor_shard_id__": "1_of_4"}, 0)
	}
	_, stderr := imported(t, exitUsage, dir, "--address", url, "--state", filepath.Join(t.TempDir(), "state"), "--tenant", "x")
	if !strings.Contains(stderr, "2 tenants") {
		t.Error(stderr)
	}
	imported(t, exitOK, dir, "--address", url, "--state", filepath.Join(t.TempDir(), "state"), "--verify")
	for tenant, want := range map[string]float64{"team-a": 10, "team-b": 20, "": 0} {
		if got := countSamples(t, url, tenant, `many{__compactor_shard_id__=""}`); got != want {
			t.Errorf("%s: %v samples, expected %v", tenant, got, want)
		}
	}
}

// TestImportGoesOn stops an import again and again, and makes the server refuse requests meanwhile. At the
// end everything is there once.
func TestImportGoesOn(t *testing.T) {
	target, dir, from := startServer(t), t.TempDir(), recently()
	writeBlock(t, dir, fillMany(from, 100, 1000))
	writeBlock(t, dir, fillMany(from+500_000, 100, 1000))
	var requests atomic.Int64
	var stop atomic.Pointer[context.CancelFunc]
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := requests.Add(1); {
		case n%7 == 3:
			w.Header().Set("Retry-After", "0")
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		case n%5 == 4 && stop.Load() != nil:
			defer (*stop.Load())() // after the server has stored it
		}
		proxy.ServeHTTP(w, r)
	}))
	defer server.Close()
	state := filepath.Join(t.TempDir(), "state")
	var sent int64
	for runs := 1; ; runs++ {
		ctx, cancel := context.WithCancel(t.Context())
		if runs < 5 {
			stop.Store(&cancel)
		} else {
			stop.Store(nil)
		}
		var out, errs bytes.Buffer
		code := run(ctx, []string{"import", "tsdb", dir, "--address", server.URL, "--state", state, "--json", "--verify"}, &process{stdout: &out, stderr: &errs})
		cancel()
		var r tsdbimport.Report
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s%s", err, out.String(), errs.String())
		}
		sent += r.Floats
		if code == exitOK {
			t.Logf("%d runs, %d samples sent", runs, sent)
			break
		}
		if runs == 5 {
			t.Fatal(errs.String())
		}
	}
	if got := countSamples(t, target, "", "many"); got != 150_000 {
		t.Errorf("%v samples, expected 150000", got)
	}
}

// TestImportRefuses lists sources and servers that cannot be used, with the words that a user needs.
func TestImportRefuses(t *testing.T) {
	server, from := startServer(t), recently()
	block := func(t *testing.T, change func(block string) error) string {
		dir := t.TempDir()
		if err := change(writeBlock(t, dir, fillMany(from, 10, 300))); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	flip := func(name string, at int64) func(string) error {
		return func(block string) error {
			path := filepath.Join(block, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if at < 0 {
				at += int64(len(text))
			}
			text[at] ^= 0xff
			return os.WriteFile(path, text, 0o644)
		}
	}
	meta := func(from, to string) func(string) error {
		return func(block string) error {
			path := filepath.Join(block, "meta.json")
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, bytes.Replace(text, []byte(from), []byte(to), 1), 0o644)
		}
	}
	for name, c := range map[string]struct {
		dir  func(t *testing.T) string
		args []string
		want string
	}{
		"no folder":       {dir: func(*testing.T) string { return "/nowhere" }, want: "no such file"},
		"an empty folder": {dir: func(t *testing.T) string { return t.TempDir() }, want: "no block is there"},
		"no meta.json": {dir: func(t *testing.T) string {
			return block(t, func(b string) error { return os.Remove(b + "/meta.json") })
		}, want: "it has 1 block, and none was imported"},
		"meta.json of 0": {dir: func(t *testing.T) string {
			return block(t, func(b string) error { return os.Truncate(b+"/meta.json", 0) })
		}, want: "meta.json: corrupt"},
		"another version": {dir: func(t *testing.T) string { return block(t, meta(`"version": 1`, `"version": 2`)) }, want: "version 2, expected 1"},
		"no index":        {dir: func(t *testing.T) string { return block(t, func(b string) error { return os.Remove(b + "/index") }) }, want: "index: no such file"},
		"a bad index":     {dir: func(t *testing.T) string { return block(t, flip("index", -10)) }, want: "read TOC"},
		"half an index": {dir: func(t *testing.T) string {
			return block(t, func(b string) error { return os.Truncate(b+"/index", 100) })
		}, want: "read TOC"},
		"a bad chunk": {dir: func(t *testing.T) string { return block(t, flip("chunks/000001", 40)) }, want: "checksum mismatch"},
		"half the chunks": {dir: func(t *testing.T) string {
			return block(t, func(b string) error { return os.Truncate(b+"/chunks/000001", 60) })
		}, want: "segment doesn't include enough bytes"},
		"no chunks": {dir: func(t *testing.T) string {
			return block(t, func(b string) error { return os.RemoveAll(b + "/chunks") })
		}, want: "chunks: no such file"},
		"a bad tombstone": {dir: func(t *testing.T) string { return block(t, flip("tombstones", 5)) }, want: "checksum did not match"},
		"too old": {dir: func(t *testing.T) string {
			d := t.TempDir()
			writeBlock(t, d, fillMany(1_500_000_000_000, 2, 2))
			return d
		}, want: "start the server with --max-age 0"},
		"not a URL": {dir: func(t *testing.T) string { return t.TempDir() }, args: []string{"--address", "localhost"}, want: "is not a URL such as"},
		"a server that is away": {dir: func(t *testing.T) string { return block(t, func(string) error { return nil }) },
			args: []string{"--address", "http://127.0.0.1:1", "--patience", "1s"}, want: "acknowledged nothing for"},
		"another server": {dir: func(t *testing.T) string { return block(t, func(string) error { return nil }) },
			args: []string{"--address", notFound(t)}, want: "HTTP 404"},
		"a start after the end": {dir: func(t *testing.T) string { return block(t, func(string) error { return nil }) },
			args: []string{"--start", "2030-01-01"}, want: "it has 1 block, and none was imported"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			args := append([]string{"import", "tsdb", c.dir(t), "--address", server, "--quiet", "--state", filepath.Join(t.TempDir(), "state")}, c.args...)
			code := run(t.Context(), args, &process{stdout: &out, stderr: &errs})
			if code == exitOK || !strings.Contains(errs.String(), c.want) {
				t.Errorf("exit code %d: %s, expected %q", code, errs.String(), c.want)
			}
		})
	}
}

// notFound is a server without remote write.
func notFound(t *testing.T) string {
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.URL
}
