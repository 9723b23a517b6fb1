package fronts

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Program is how a front is started: its command, with words in braces that stand for what it is to use.
// {listen} is its address, {backend} the URL of the store, {dir} a folder of its own. {fleet} has the
// addresses of all fronts that share the work, with commas between them.
type Program struct{ Name, Command string }

// ParseProgram reads NAME=COMMAND.
func ParseProgram(text string) (Program, error) {
	name, command, ok := strings.Cut(text, "=")
	if !ok || !strings.Contains(command, "{listen}") || !strings.Contains(command, "{backend}") {
		return Program{}, fmt.Errorf("%q is not NAME=COMMAND with {listen} and {backend} in it", text)
	}
	return Program{name, command}, nil
}

// running is a front that was started.
type running struct {
	Front
	cmd  *exec.Cmd
	done chan error
}

const (
	startLimit = time.Minute
	stopLimit  = 30 * time.Second
)

// start starts a front and waits until it is ready.
func (p Program) start(ctx context.Context, listen, fleet, store, dir string, log io.Writer) (*running, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	words := strings.Fields(p.Command)
	for i := range words {
		words[i] = strings.NewReplacer("{listen}", listen, "{fleet}", fleet, "{backend}", store, "{dir}", dir).Replace(words[i])
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &running{Front{p.Name, "http://" + listen}, cmd, make(chan error, 1)}
	go func() { r.done <- cmd.Wait() }()
	for began := time.Now(); time.Since(began) < startLimit; time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-r.done:
			r.done <- err
			return nil, fmt.Errorf("%s has ended: %v", p.Name, err)
		default:
		}
		if resp, err := http.Get(r.URL + "/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return r, nil
			}
		}
	}
	r.stop()
	return nil, fmt.Errorf("%s is not ready after %s", p.Name, startLimit)
}

// stop asks the front to end, and ends it if it does not.
func (r *running) stop() {
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-r.done:
	case <-time.After(stopLimit):
		_ = r.cmd.Process.Kill()
		<-r.done
	}
}

// freeAddresses returns addresses on which nothing listens.
func freeAddresses(n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all, nil
}
