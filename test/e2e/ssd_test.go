//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/plot"
)

var (
	ssdMegabytes = flag.Int("ssd-mb", 150, "megabytes of lines whose pages the SSD cache holds")
	ssdSize      = flag.String("ssd-size", "1GiB", "size of the SSD cache")
	ssdPlot      = flag.String("ssd-plot", "", "file for a chart of hit rates before and after a kill; needs memcached")
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
	s.args = append(s.args, "--memory", *ssdMemory, "--cache.ssd", s.cache+":"+*ssdSize, "--cache.answers", "off")
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
// that it had before. With -ssd-plot, it draws that, next to a server without the cache and to memcached.
func TestSSDCacheSurvivesKill(t *testing.T) {
	s := newSSDServer(t)
	run := func() float64 {
		r := s.run(t)
		t.Log(r)
		return 100 * r.hitRate()
	}
	kill := func() {
		s.kill(t)
		began := time.Now()
		s.start()
		t.Logf("ready %.2f s after the kill", time.Since(began).Seconds())
	}
	cached := acrossKill("Shale with an SSD cache", run, kill)
	if before, after := cached.Points[runsBeforeKill-1][1], cached.Points[runsBeforeKill][1]; after < before-1 {
		t.Errorf("hit rate %.1f %% before the kill, %.1f %% after it", before, after)
	}
	if *ssdPlot == "" {
		return
	}
	s.stop(t)
	s.args = s.args[:len(s.args)-2]
	s.start()
	chart := plot.Lines{Title: "Hit rate of the same queries, before and after a kill", Unit: "%", Marks: []plot.Mark{{At: runsBeforeKill * runEvery.Seconds(), Name: "SIGKILL and restart"}}}
	chart.Curves = []plot.Curve{cached, acrossKill("Shale with memory alone", run, kill), extstoreAcrossKill(t)}
	writeFile(t, *ssdPlot, chart.SVG())
}

const (
	runsBeforeKill = 5
	runEvery       = 2 * time.Second
)

// acrossKill returns the hit rates of runs in an interval, with a kill in their middle.
func acrossKill(name string, run func() float64, kill func()) plot.Curve {
	c := plot.Curve{Name: name}
	began := time.Now()
	for i := range 2 * runsBeforeKill {
		if i == runsBeforeKill {
			kill()
		}
		time.Sleep(time.Duration(i)*runEvery - time.Since(began))
		at := time.Since(began).Seconds()
		c.Points = append(c.Points, [2]float64{at, run()})
	}
	return c
}

// extstoreAcrossKill is acrossKill of a memcached with extstore, as a cache of 2,000 pages of 28 KiB.
func extstoreAcrossKill(t *testing.T) plot.Curve {
	dir, addr := t.TempDir(), freeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	var server *process
	var conn net.Conn
	open := func() {
		server = start(t, dir, "memcached", "memcached", "-u", "root", "-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "64", "-o", "ext_path="+filepath.Join(dir, "extstore")+":1G")
		for range 100 {
			var err error
			if conn, err = net.Dial("tcp", addr); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("memcached does not answer:\n%s", server.logTail(1<<10))
	}
	open()
	page := strings.Repeat("x", 28<<10)
	run := func() float64 {
		const pages = 2000
		hits := 0
		r := bufio.NewReaderSize(conn, 64<<10)
		line := func() string {
			text, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		for n := range pages {
			fmt.Fprintf(conn, "get p%d\r\n", n)
			if strings.HasPrefix(line(), "VALUE") {
				hits++
				line()
				line()
				continue
			}
			fmt.Fprintf(conn, "set p%d 0 0 %d\r\n%s\r\n", n, len(page), page)
			line()
		}
		return 100 * float64(hits) / pages
	}
	return acrossKill("memcached with extstore", run, func() {
		conn.Close()
		if err := server.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-server.done
		open()
	})
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
	if text := s.logText(t); !bytes.Contains(text, []byte("the SSD cache is not used, or only read")) {
		t.Error("the log does not say that the cache is out")
	}
}

// TestSSDCacheFileSystems puts the cache on a file system that fills up below it and then becomes read-only.
// All results stay the same, and the cache comes back. It needs root, to mount one.
func TestSSDCacheFileSystems(t *testing.T) {
	s := newSSDServer(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96m"); err != nil {
		t.Skip("cannot mount a file system: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s.stop(t)
	s.cache = filepath.Join(dir, "ssd")
	for i, arg := range s.args {
		if arg == "--cache.ssd" {
			s.args[i+1] = s.cache + ":80MiB"
		}
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 84<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	for range 2 {
		t.Logf("on a file system that fills up: %v", s.run(t))
	}
	if text := s.logText(t); !bytes.Contains(text, []byte("the SSD cache stays smaller than its setting")) {
		t.Errorf("the log does not say that the file system has no room:\n%s", text)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.kill(t)
	s.start()
	var r round
	for range 2 {
		r = s.run(t)
		t.Logf("with space again: %v", r)
	}
	if r.disk == 0 {
		t.Error("the cache is not used again")
	}
	if text := s.logText(t); bytes.Contains(text, []byte("stack trace")) {
		t.Error("the log has a stack trace")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=96m"); err != nil {
		// Files that are open for writing keep a file system from it, so the server starts on one instead.
		s.stop(t)
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=96m"); err != nil {
			t.Fatal(err)
		}
		s.start()
	}
	t.Logf("read-only: %v", s.run(t))
	if text := s.logText(t); !bytes.Contains(text, []byte("read-only file system")) {
		t.Errorf("the log does not say that the file system is read-only:\n%s", text)
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
