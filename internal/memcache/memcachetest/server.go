package memcachetest

import (
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Server is a memcached. It ends with its test.
type Server struct {
	// Addr is HOST:PORT.
	Addr string

	t    testing.TB
	args []string
	cmd  *exec.Cmd
	port string
}

// Start runs memcached with further arguments, and waits until it takes connections. A test of a machine
// without memcached is skipped: on Debian, .ci/tools installs it.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("memcached"); err != nil {
		t.Skip("memcached is not installed: run .ci/tools")
	}
	// memcached could choose a port itself, but another connection could have it by the time of a restart.
	s := &Server{t: t, args: args, port: FreePort(t)}
	s.Addr = "127.0.0.1:" + s.port
	s.Restart()
	t.Cleanup(s.Kill)
	return s
}

// Extstore returns the arguments of a server that keeps values on disk, in a folder, but for so many
// megabytes.
func Extstore(dir string, memory int) []string {
	return []string{
		"-m", strconv.Itoa(memory), "-o", "ext_page_size=2,ext_wbuf_size=2,ext_item_size=512,ext_path=" + filepath.Join(dir, "extstore") + ":64m",
	}
}

// Restart runs the server again, empty, on its port.
func (s *Server) Restart() {
	s.t.Helper()
	s.cmd = exec.Command("memcached", append([]string{"-l", "127.0.0.1", "-U", "0", "-p", s.port, "-u", "root"}, s.args...)...)
	var log strings.Builder
	s.cmd.Stderr = &log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", s.Addr); err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(end) {
			s.Kill()
			s.t.Fatalf("memcached did not begin within 30 s: %s", log.String())
		}
	}
}

// Kill ends the server at once.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Stop stops the server without ending it: its connections stay open, and it does not answer until Continue.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Continue lets a stopped server go on.
func (s *Server) Continue() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Error(err)
	}
}
