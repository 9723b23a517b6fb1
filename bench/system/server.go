package system

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shaledb/shale/bench/proc"
	"github.com/shaledb/shale/test/ports"
)

// Server is a server that runs.
type Server struct {
	System
	Options
	// HTTP and Graphite are addresses.
	HTTP, Graphite string
	PID            int

	cmd    *exec.Cmd
	log    *os.File
	client *http.Client
	kept   bool          // responses may be made of kept results
	ended  chan struct{} // closed once the process has ended
	err    error
}

// The longest times of a server.
const (
	startTime = 2 * time.Minute
	stopTime  = time.Minute
	askTime   = 10 * time.Minute
)

// Start starts a server and waits until it serves.
func Start(ctx context.Context, sys System, o Options) (*Server, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	addrs, err := ports.Reserve(2)
	if err != nil {
		return nil, err
	}
	if err := sys.prepare(o, addrs[0], addrs[1]); err != nil {
		return nil, err
	}
	s := &Server{System: sys, Options: o, HTTP: addrs[0], Graphite: addrs[1], client: &http.Client{Timeout: askTime}, ended: make(chan struct{})}
	if s.log, err = os.OpenFile(o.Dir+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	s.cmd = exec.Command(sys.Binary, sys.arguments(o, s.HTTP, s.Graphite)...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	// Ctrl-C at the terminal goes to the benchmark, which stops its servers; if it is killed, they end with
	// it.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, s.log.Close())
	}
	s.PID = s.cmd.Process.Pid
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		if code, _, err := s.Get(ctx, s.ready()); err == nil && code == http.StatusOK {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("%s ended before it was ready: %w; its log ends with:\n%s", s.Name, s.err, s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready: %w; its log ends with:\n%s", s.Name, ctx.Err(), s.logTail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// logTail returns the last lines of the log.
func (s *Server) logTail() string {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text[max(0, len(text)-1500):]))
}

// AsUsers returns a view of the server whose requests are those of users: without a header that has
// everything computed.
func (s *Server) AsUsers() *Server {
	users := *s
	users.kept = true
	return &users
}

// Stop ends the server with SIGTERM and waits for its end. It fails if the server had to be killed.
func (s *Server) Stop() (err error) {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-s.ended:
	case <-time.After(stopTime):
		_ = s.cmd.Process.Kill()
		<-s.ended
		err = fmt.Errorf("%s did not stop within %v and was killed; its log ends with:\n%s", s.Name, stopTime, s.logTail())
	}
	s.client.CloseIdleConnections()
	return errors.Join(err, s.log.Close())
}

// Alive returns an error if the server has ended by itself.
func (s *Server) Alive() error {
	select {
	case <-s.ended:
		return fmt.Errorf("%s ended: %v; its log ends with:\n%s", s.Name, s.err, s.logTail())
	default:
		return nil
	}
}

// WriteURL is the URL of remote write.
func (s *Server) WriteURL() string { return "http://" + s.HTTP + "/api/v1/write" }

// PushURL is the URL of Loki's push protocol.
func (s *Server) PushURL() string {
	if s.Kind == VictoriaLogs { // lines of JSON must not be parsed: queries must return them as sent
		return "http://" + s.HTTP + "/insert/loki/api/v1/push?disable_message_parsing=1"
	}
	return "http://" + s.HTTP + "/loki/api/v1/push"
}

// Get sends a GET request.
func (s *Server) Get(ctx context.Context, path string) (code int, body []byte, err error) {
	return s.do(ctx, http.MethodGet, path)
}

// Post sends a POST request.
func (s *Server) Post(ctx context.Context, path string) (code int, body []byte, err error) {
	return s.do(ctx, http.MethodPost, path)
}

// Cost sends a GET request to Shale and returns the figures in the statement of its cost.
func (s *Server) Cost(ctx context.Context, path string) (map[string]float64, error) {
	resp, body, err := s.send(ctx, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d: %.200s", s.Name, resp.StatusCode, body)
	}
	cost := make(map[string]float64)
	for part := range strings.SplitSeq(resp.Header.Get("Shale-Cost"), ",") {
		name, text, _ := strings.Cut(strings.TrimSpace(part), "=")
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			cost[name] = v
		}
	}
	if len(cost) == 0 {
		return nil, fmt.Errorf("%s: the response to %.100s states no cost", s.Name, path)
	}
	return cost, nil
}

func (s *Server) do(ctx context.Context, method, path string) (code int, body []byte, err error) {
	resp, body, err := s.send(ctx, method, path)
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, body, nil
}

// send sends a request and reads the whole response.
func (s *Server) send(ctx context.Context, method, path string) (resp *http.Response, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.HTTP+path, nil)
	if err != nil {
		return nil, nil, err
	}
	if !s.kept {
		req.Header.Set("Cache-Control", "no-cache") // a kept response would say nothing of the query
	}
	if resp, err = s.client.Do(req); err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp, body, err
}

// Usage returns the usage of the process so far.
func (s *Server) Usage() (proc.Usage, error) { return proc.Read(s.PID) }

// Metric returns the sum of a metric of the server over all labels, or over the labels that contain a text.
func (s *Server) Metric(ctx context.Context, name, label string) (float64, error) {
	code, body, err := s.Get(ctx, "/metrics")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%s: /metrics: status %d", s.Name, code)
	}
	if err != nil {
		return 0, err
	}
	v, ok := sum(body, name, label)
	if !ok {
		return 0, fmt.Errorf("%s: /metrics: no %s", s.Name, name)
	}
	return v, nil
}

// Received returns the server's counter of Graphite points.
func (s *Server) Received(ctx context.Context) (float64, error) {
	name, label := s.received()
	v, err := s.Metric(ctx, name, label)
	if err != nil && s.Kind == VictoriaMetrics && ctx.Err() == nil && s.Alive() == nil {
		return 0, nil // the counter appears with the first point
	}
	return v, err
}

// sum adds up the samples of a metric in the text format.
func sum(text []byte, name, label string) (total float64, found bool) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' || !strings.Contains(rest, label) {
			continue
		}
		f := strings.Fields(rest[strings.LastIndexByte(rest, '}')+1:])
		if len(f) == 0 {
			continue
		}
		if v, err := strconv.ParseFloat(f[0], 64); err == nil {
			total, found = total+v, true
		}
	}
	return total, found
}

// DiskBytes returns the size of the files of a folder on the disk. Files that vanish meanwhile count as 0.
func DiskBytes(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			total += min(info.Size(), st.Blocks*512)
		}
		return nil
	})
	return total, err
}
