package memcachetest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/test/ports"
)

// FreePort returns a port of the loopback interface, for programs that cannot be told to take any. No other
// test gets it.
func FreePort(t testing.TB) string {
	t.Helper()
	addrs, err := ports.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(addrs[0], "127.0.0.1:")
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
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("nutcracker did not begin within 30 s: %s", log.String())
		}
	}
}
