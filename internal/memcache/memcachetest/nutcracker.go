package memcachetest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FreePort returns a port of the loopback interface that was free a moment ago, for programs that cannot be
// told to take any.
func FreePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // it has served its purpose
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// StartNutcracker runs twemproxy with a configuration, and waits until an address takes connections. It ends
// with its test. A test of a machine without it is skipped.
func StartNutcracker(t testing.TB, config, addr string) {
	t.Helper()
	if _, err := exec.LookPath("nutcracker"); err != nil {
		t.Skip("nutcracker is not installed: run .ci/tools")
	}
	file := filepath.Join(t.TempDir(), "nutcracker.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nutcracker", "-c", file, "-a", "127.0.0.1", "-s", FreePort(t))
	var log strings.Builder
	cmd.Stderr, cmd.Stdout = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("nutcracker did not begin within 10 s: %s", log.String())
		}
	}
}
