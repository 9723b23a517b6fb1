//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/shaledb/shale/test/ports"
)

// process is a program that runs until the test ends, or stop is called.
type process struct {
	name string
	log  string // path
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended
	err  error         // of Wait; to be read after done
}

// start runs a program with its output in a file of the test's folder. The end of the log is shown if the
// test fails.
func start(t *testing.T, dir, name, program string, args ...string) *process {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%s is needed; on Debian: apt-get install prometheus collectd netcat-openbsd (or make test as root)", program)
	}
	p := &process{name: name, log: filepath.Join(dir, name+".log"), cmd: exec.Command(program, args...), done: make(chan struct{})}
	f, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = f, f, dir
	err = p.cmd.Start()
	f.Close()
	if err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("the log of %s ends with:\n%s", name, p.logTail(4<<10))
		}
	})
	return p
}

// stop sends SIGTERM and waits for the end of the program. A second call does nothing.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.ended() {
		return
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("ending %s: %v", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
		t.Errorf("%s did not end within 30 s of SIGTERM", p.name)
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) logText(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (p *process) logTail(n int) []byte {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	text = text[max(0, len(text)-n):]
	return bytes.TrimSpace(text)
}

// waitFor polls a URL until it answers 200.
func (p *process) waitFor(t *testing.T, url string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		if p.ended() {
			t.Fatalf("%s ended: %v\n%s", p.name, p.err, p.logTail(4<<10))
		}
		resp, err := http.Get(url)
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	t.Fatalf("%s did not answer %s within 30 s", p.name, url)
}

// freeAddr returns an address for a server that the test starts.
func freeAddr(t *testing.T) string {
	t.Helper()
	addrs, err := ports.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
