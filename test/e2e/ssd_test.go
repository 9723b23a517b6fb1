//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	ssdMegabytes = flag.Int("ssd-mb", 150, "megabytes of lines whose pages the SSD cache holds")
	ssdSize      = flag.String("ssd-size", "1GiB", "size of the SSD cache")
	ssdMemory    = flag.String("ssd-memory", "256MiB", "memory budget of the server with the SSD cache")
)

// ssdServer is a server whose lines are in the bucket, with an SSD cache.
type ssdServer struct {
	*server
	cache   string   // folder
	queries []string // LogQL over all lines
	bodies  []string // results of the queries
}

func newSSDServer(t *testing.T) *ssdServer {
	if *serverKind != "shale" {
		t.Skip("it is about Shale's own cache")
	}
	s := &ssdServer{server: newServer(t, t.TempDir())}
	s.start()
	now := time.Now()
	load := exec.Command(s.program, "load", "logs", "--quiet", "--mb", strconv.Itoa(*ssdMegabytes), "--span", "12h", "--url", s.url()+"/loki/api/v1/push", "--seed", "19")
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("load: %v\n%s", err, out)
	}
	s.stop(t)
	s.putAway(t)
	s.cache = filepath.Join(s.dir, "ssd")
	s.args = append(s.args, "--memory", *ssdMemory, "--cache.ssd", s.cache+":"+*ssdSize)
	s.start()
	for hour := range 12 {
		end := now.Add(-time.Duration(hour) * time.Hour)
		for _, q := range []string{`sum by (level) (count_over_time({app=~".+"} |~ "(?i)time.?out" [1h]))`, `{app="checkout"} |= "error"`, `sum(bytes_over_time({app=~"c.*"}[1h]))`} {
			s.queries = append(s.queries, "/loki/api/v1/query_range?"+url.Values{
				"query": {q}, "start": {strconv.FormatInt(end.Add(-time.Hour).UnixNano(), 10)}, "end": {strconv.FormatInt(end.UnixNano(), 10)}, "step": {"3600"}, "limit": {"500"},
			}.Encode())
		}
	}
	s.bodies = make([]string, len(s.queries))
	return s
}

// round is what one run of all queries read.
type round struct {
	ram, disk, bucket, requests int64 // pages, and requests to the bucket
	took                        time.Duration
}

// hitRate returns the share of pages that did not come from the bucket.
func (r round) hitRate() float64 {
	return float64(r.ram+r.disk) / float64(max(1, r.ram+r.disk+r.bucket))
}

func (r round) String() string {
	return fmt.Sprintf("%.1f %% of %d pages not from the bucket (%d from memory, %d from the SSD), %d requests, %.2f s",
		100*r.hitRate(), r.ram+r.disk+r.bucket, r.ram, r.disk, r.requests, r.took.Seconds())
}

var statistics = regexp.MustCompile(`"(stats|warnings)":(\{.*\}|\[.*?\])`)

// run sends all queries, compares the results with those of the first run, and adds their costs.
func (s *ssdServer) run(t *testing.T) (r round) {
	t.Helper()
	began := time.Now()
	for i, q := range s.queries {
		resp, err := http.Get(s.url() + q)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v: %.500s", q, resp.StatusCode, err, body)
		}
		text := statistics.ReplaceAllString(string(body), "")
		if s.bodies[i] == "" {
			s.bodies[i] = text
		} else if text != s.bodies[i] {
			t.Fatalf("%s: the result has changed from\n%.500s\nto\n%.500s", q, s.bodies[i], text)
		}
		for _, part := range strings.Split(resp.Header.Get("Shale-Cost"), ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			n, _ := strconv.ParseInt(value, 10, 64)
			switch name {
			case "pages-ram":
				r.ram += n
			case "pages-disk":
				r.disk += n
			case "pages-bucket":
				r.bucket += n
			case "bucket-requests":
				r.requests += n
			}
		}
	}
	r.took = time.Since(began)
	return r
}

func (s *ssdServer) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.done
}

// TestSSDCacheSurvivesKill: a server that was killed answers from its SSD cache at once, with the hit rate
// that it had before.
func TestSSDCacheSurvivesKill(t *testing.T) {
	s := newSSDServer(t)
	var before round
	for i := range 4 {
		before = s.run(t)
		t.Logf("run %d: %v", i+1, before)
	}
	s.kill(t)
	began := time.Now()
	s.start()
	ready := time.Since(began)
	after := s.run(t)
	t.Logf("ready %.2f s after the kill: %v", ready.Seconds(), after)
	if after.disk == 0 || after.hitRate() < before.hitRate()-0.01 {
		t.Errorf("hit rate %.3f before the kill, %.3f after it", before.hitRate(), after.hitRate())
	}
	s.stop(t)
	if err := os.RemoveAll(s.cache); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Logf("without what was on the SSD: %v", s.run(t))
}

// TestSSDCacheFaults damages the files of the cache below a running server, and removes them. All results
// stay the same.
func TestSSDCacheFaults(t *testing.T) {
	s := newSSDServer(t)
	for range 3 {
		s.run(t)
	}
	segments, err := filepath.Glob(filepath.Join(s.cache, "segment-*"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("no segments: %v", err)
	}
	r := rand.New(rand.NewPCG(19, 1))
	for _, name := range segments {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for range len(b) >> 16 {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(b)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("with flipped bits: %v", s.run(t))
	if !bytes.Contains(s.metrics(t), []byte("shale_cache_bad_records_total{tier=\"ssd\"} ")) || bytes.Contains(s.metrics(t), []byte("shale_cache_bad_records_total{tier=\"ssd\"} 0\n")) {
		t.Error("no damaged records were counted")
	}
	s.kill(t)
	s.start()
	t.Logf("with flipped bits, after a kill: %v", s.run(t))
	if err := os.RemoveAll(s.cache); err != nil {
		t.Fatal(err)
	}
	t.Logf("with the folder removed: %v", s.run(t))
	s.stop(t)
	if err := os.WriteFile(s.cache, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Logf("with a file in place of the folder: %v", s.run(t))
	if text := s.logText(t); !bytes.Contains(text, []byte("the SSD cache takes itself out")) {
		t.Error("the log does not say that the cache is out")
	}
}

func (s *ssdServer) metrics(t *testing.T) []byte {
	t.Helper()
	resp, err := http.Get(s.url() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return text
}
