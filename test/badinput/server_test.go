//go:build e2e

package badinput

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

	"github.com/shaledb/shale/test/ports"
)

// The limits of the server that is attacked.
const (
	memoryMiB   = 128
	tenants     = 8
	connections = 32
	bodyMiB     = 4
	decodedMiB  = 8
)

// server is a running Shale.
type server struct {
	program, dir, log string
	httpAddr          string
	graphiteAddr      string
	pickleAddr        string
	args              []string
	cmd               *exec.Cmd
	done              chan struct{} // closed when it has ended
	good              int           // good writes so far
	lastBadLine       time.Time
}

// program builds Shale once for all tests.
func program(t *testing.T) string {
	t.Helper()
	if *given != "" {
		return *given
	}
	name := filepath.Join(t.TempDir(), "shale")
	if out, err := exec.Command("go", "build", "-tags", "invariants", "-o", name, "../../cmd/shale").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return name
}

func newServer(t *testing.T, program, dir string, more ...string) *server {
	s := &server{program: program, dir: dir, log: filepath.Join(dir, "server.log"), httpAddr: freeAddr(t), graphiteAddr: freeAddr(t), pickleAddr: freeAddr(t)}
	s.args = append([]string{
		"serve", "--data-dir", filepath.Join(dir, "data"), "--http-listen", s.httpAddr, "--graphite-listen", s.graphiteAddr,
		"--graphite-pickle-listen", s.pickleAddr,
		"--memory", fmt.Sprint(memoryMiB, "MiB"),
	}, more...)
	return s
}

// start runs the server until the test ends and waits until it is ready.
func (s *server) start(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s.cmd, s.done = exec.Command(s.program, s.args...), make(chan struct{})
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir, s.cmd.Env = f, f, s.dir, environ()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(s.cmd, s.done)
	t.Cleanup(func() { s.stop(t) })
	for began := time.Now(); time.Since(began) < 30*time.Second && !s.ended(); time.Sleep(20 * time.Millisecond) {
		if status, _ := s.get("/ready"); status == http.StatusOK {
			return
		}
	}
	t.Fatalf("the server is not ready:\n%s", s.logSince(0))
}

// stop ends the server with SIGTERM. A second call does nothing.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if s.ended() {
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	select {
	case <-s.done:
	case <-time.After(40 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
		t.Error("the server did not end within 40 s of SIGTERM")
	}
}

func (s *server) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// hung is the time after which a silent server counts as hanging. It only guards against waiting without end,
// so it is long enough for a busy machine.
const hung = time.Minute

// client gives up before a hanging server makes the whole test hang.
var client = &http.Client{Timeout: hung}

func (s *server) get(path string) (int, string) {
	resp, err := client.Get("http://" + s.httpAddr + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(body)
}

func (s *server) logSize() int {
	info, err := os.Stat(s.log)
	if err != nil {
		return 0
	}
	return int(info.Size())
}

func (s *server) logSince(at int) string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text[min(at, len(text)):])
}

// counters reads all of the server's own metrics.
func (s *server) counters(t *testing.T) map[string]float64 {
	t.Helper()
	status, text := s.get("/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d %.300s", status, text)
	}
	m := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && strings.HasPrefix(name, "shale_") {
			m[name] = v
		}
	}
	return m
}

// status reads a line of /proc/PID/status in MiB.
func (s *server) status(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in\n%s", name, text)
	}
	kib, _ := strconv.Atoi(string(m[1]))
	return kib >> 10
}

// forgetPeak resets VmHWM.
func (s *server) forgetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.cmd.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// healthy writes a good sample by each metric protocol and queries all of them.
func (s *server) healthy() error {
	if status, text := s.get("/ready"); status != http.StatusOK {
		return fmt.Errorf("/ready: %d %s", status, text)
	}
	s.good++
	now, counted := time.Now(), s.graphitePoints()
	if status, text := s.post(nil, message(series(good("good"), sample(float64(s.good), now.UnixMilli())))); status != http.StatusNoContent {
		return fmt.Errorf("a good write: %d %s", status, text)
	}
	conn, err := net.Dial("tcp", s.graphiteAddr)
	if err != nil {
		return err
	}
	fmt.Fprintf(conn, "good.graphite %d %d\n", s.good, now.Unix())
	conn.Close()
	pickles, err := net.Dial("tcp", s.pickleAddr)
	if err != nil {
		return err
	}
	write(pickles, frame(list(point(text("good.pickle"), number(float64(now.Unix())), number(float64(s.good))))))
	pickles.Close()
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
		// A point is counted a moment after queries see it, and the next attack must not be blamed for it.
		if err = s.seen(now); err == nil && s.graphitePoints() >= counted+2 {
			return nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%v points of Graphite are counted, expected %v", s.graphitePoints(), counted+2)
	}
	return err
}

// graphitePoints returns how many points were received over all transports.
func (s *server) graphitePoints() (n float64) {
	_, text := s.get("/metrics")
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, "shale_graphite_received_points_total{") {
			v, _ := strconv.ParseFloat(value, 64)
			n += v
		}
	}
	return n
}

func (s *server) seen(now time.Time) error {
	for _, q := range []string{"good", `{"good.graphite"}`, `{"good.pickle"}`} {
		status, text := s.get("/api/v1/query?" + url.Values{"query": {q}, "time": {strconv.FormatInt(now.Unix()+1, 10)}}.Encode())
		var a struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		if err := json.Unmarshal([]byte(text), &a); status != http.StatusOK || err != nil {
			return fmt.Errorf("a good query: %d %s", status, text)
		}
		if want := strconv.Itoa(s.good); len(a.Data.Result) != 1 || a.Data.Result[0].Value[1] != want {
			return fmt.Errorf("query %s: got %v, want %s", q, a.Data.Result, want)
		}
	}
	return nil
}

// freeAddr returns an address without a listener.
func freeAddr(t *testing.T) string {
	t.Helper()
	addrs, err := ports.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}

// firstLine returns the bytes before the first newline.
func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return string(line)
}
