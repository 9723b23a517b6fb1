//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMemcachedClients runs real clients in three languages, unchanged, against `shale memcached serve`,
// before and after a kill.
func TestMemcachedClients(t *testing.T) {
	t.Parallel()
	sessions, err := filepath.Abs("../memcached")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("../../bin/test/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	golang := goBuild(t, sessions, ".")
	shale := shaleBinary(t)
	for _, name := range []string{"first", "second"} {
		p := start(t, dir, name, shale, "memcached", "serve", "-p", "0", "--metrics", "", "--ssd", filepath.Join(dir, "cache")+":64MiB")
		addr := ""
		for end := time.Now().Add(30 * time.Second); addr == "" && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			_, rest, _ := strings.Cut(string(p.logText(t)), "serving memcached clients at ")
			addr, _, _ = strings.Cut(rest, "\n")
		}
		for _, command := range [][]string{{golang}, {"/usr/bin/python3", filepath.Join(sessions, "session.py")}, {"node", filepath.Join(sessions, "session.js")}} {
			client := exec.Command(command[0], append(command[1:], addr)...)
			client.Env = append(os.Environ(), "NODE_PATH="+modules)
			if out, err := client.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "ok" {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-p.done
	}
}
