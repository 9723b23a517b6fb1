//go:build e2e

package objectstores

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/test/ports"
)

// shale is a running server with its bucket in a store.
type shale struct {
	t          *testing.T
	dir        string
	args       []string
	http, line string // addresses
	cmd        *exec.Cmd
	log        bytes.Buffer
}

// built is the program, next to those of the stores.
var built = sync.OnceValues(func() (string, error) {
	path, err := find("versitygw")
	if err != nil {
		return "", err
	}
	path = filepath.Join(filepath.Dir(path), "shale")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/shaledb/shale/cmd/shale").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func buildShale(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func newShale(t *testing.T, program, bucket string) *shale {
	t.Helper()
	addrs, err := ports.Reserve(3)
	if err != nil {
		t.Fatal(err)
	}
	s := &shale{t: t, dir: filepath.Join(t.TempDir(), "data"), http: addrs[0], line: addrs[1]}
	s.args = []string{program, "serve", "--data-dir", s.dir, "--bucket", bucket, "--http-listen", s.http, "--graphite-listen", s.line,
		"--graphite-pickle-listen", addrs[2], "--memory", "256MiB", "--store.window", "1m", "--store.grace", "1s",
		"--store.late-age", "1m", "--cache.answers", "off"}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the log of shale:\n%s", s.log.Bytes())
		}
	})
	return s
}

func (s *shale) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.until("ready", func() bool {
		resp, err := http.Get("http://" + s.http + "/ready")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
}

// stop ends the server gracefully, kill at once.
func (s *shale) stop() { s.end(syscall.SIGTERM) }
func (s *shale) kill() { s.end(syscall.SIGKILL) }

func (s *shale) end(signal os.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(signal)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// until waits for a condition.
func (s *shale) until(what string, done func() bool) {
	s.t.Helper()
	for began := time.Now(); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 3*time.Minute {
			s.t.Fatalf("not %s within 3 minutes", what)
		}
	}
}

// The rows of the test: a round each second, in one window.
const (
	rounds  = 12
	perTime = 100
)

func (s *shale) write(begin time.Time) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.line)
	if err != nil {
		s.t.Fatal(err)
	}
	var lines [][2]string
	for i := range rounds {
		at := begin.Add(time.Duration(i) * time.Second)
		for j := range perTime {
			fmt.Fprintf(c, "demo.host%d.value %d %d\n", j, i*perTime+j, at.Unix())
			lines = append(lines, [2]string{fmt.Sprint(at.UnixNano() + int64(j)), fmt.Sprintf("round=%d line=%d.", i, j)})
		}
	}
	if err := c.Close(); err != nil {
		s.t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"streams": []any{map[string]any{"stream": map[string]string{"app": "demo"}, "values": lines}}})
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.Post("http://"+s.http+"/loki/api/v1/push", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("push: %s %s", resp.Status, text)
	}
}

// get returns the data of a response of either API.
func (s *shale) get(path string, query url.Values) string {
	s.t.Helper()
	resp, err := http.Get("http://" + s.http + path + "?" + query.Encode())
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var parsed struct {
		Data struct{ Result json.RawMessage }
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &parsed)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %v %s", path, resp.Status, err, text)
	}
	return string(parsed.Data.Result)
}

func (s *shale) metrics() string {
	s.t.Helper()
	resp, err := http.Get("http://" + s.http + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// answers asks about the rows in several ways.
func (s *shale) answers(begin time.Time) []string {
	s.t.Helper()
	end := begin.Add(rounds * time.Second)
	span := url.Values{"start": {fmt.Sprint(begin.Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {"2"}, "limit": {"5000"}}
	with := func(query string) url.Values {
		v := url.Values{"query": {query}}
		for name, values := range span {
			v[name] = values
		}
		return v
	}
	return []string{
		s.get("/api/v1/query_range", with(`sum({__name__=~"demo.*value"})`)),
		s.get("/api/v1/query_range", with(`{__name__=~"demo.*host1?7.*"}`)),
		s.get("/loki/api/v1/query_range", with(`{app="demo"} |= "line=7."`)),
		s.get("/loki/api/v1/query_range", with(`sum(count_over_time({app="demo"}[30s]))`)),
	}
}

// shipped counts the samples and lines of the live blocks in the bucket.
func shipped(t *testing.T, s *Store, prefix string) (samples, lines uint64) {
	t.Helper()
	survey, err := catalog.ReadSurvey(t.Context(), open(t, s.At(prefix)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range survey.Blocks {
		if b.HiddenBy == "" {
			samples, lines = samples+uint64(b.Samples), lines+uint64(b.Lines)
		}
	}
	return samples, lines
}

// TestServe writes to a server whose bucket is in a store, and waits until the rows are there. The results
// stay the same after kill -9, and after the loss of the data folder, since the bucket has all.
func TestServe(t *testing.T) {
	program := buildShale(t)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits most of the time
			store := Start(t, name)
			s := newShale(t, program, store.At("a/prefix").String())
			s.start()
			// The window has begun, and is shipped when it has ended.
			begin := time.Now().Truncate(time.Minute)
			time.Sleep(time.Until(begin.Add(rounds * time.Second)))
			s.write(begin)
			const rows = rounds * perTime
			s.until("received", func() bool {
				return strings.Contains(s.metrics(), fmt.Sprintf("shale_graphite_received_points_total{transport=\"tcp\"} %d\n", rows))
			})
			want := s.answers(begin)
			if n := strings.Count(want[2], "round="); n != rounds {
				t.Fatalf("%d of %d lines are found", n, rounds)
			}
			s.until("shipped", func() bool {
				samples, lines := shipped(t, store, "a/prefix")
				return samples == rows && lines == rows
			})
			check := func(after string) {
				t.Helper()
				for i, got := range s.answers(begin) {
					if got != want[i] {
						t.Errorf("%s: %.500s\nnot %.500s", after, got, want[i])
					}
				}
			}
			check("after the ship")
			s.kill()
			s.start()
			check("after kill -9")
			s.stop()
			if err := os.RemoveAll(s.dir); err != nil {
				t.Fatal(err)
			}
			s.start()
			check("after the loss of the data folder")
			s.stop()
			out, err := exec.Command(program, "inspect", "catalogue", store.At("a/prefix").String(), "--check").CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			out, err = exec.Command(program, "inspect", "bucket", store.At("a/prefix").String(), "--check").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "upload in parts") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestServeRefuses starts the server on stores that it must not use.
func TestServeRefuses(t *testing.T) {
	program := buildShale(t)
	store := Start(t, Versity)
	missing, denied, lying := store.Location, anonymous(store.Location), store.before(t, &liar{request: without("If-None-Match")})
	missing.Name = "another-bucket"
	for text, l := range map[string]string{
		"the bucket does not exist":                   missing.String(),
		"the store refuses access":                    denied.String(),
		`failed the step "create if absent"`:          lying.String(),
		"must not hold credentials; name a file by":   "s3://key:secret@name",
		`does not have parameter "secret-access-key"`: "s3://name?secret-access-key=secret",
	} {
		s := newShale(t, program, l)
		out, err := exec.Command(s.args[0], s.args[1:]...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), text) || strings.Contains(string(out), "key:secret") || strings.Contains(string(out), "=secret") {
			t.Errorf("%s: %v\n%s", text, err, out)
		}
		t.Logf("%s", out)
	}
}
