//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// server is the server under test: Shale, or VictoriaMetrics to test the test itself.
type server struct {
	t            *testing.T
	dir          string
	program      string // of clients
	serving      string // the program of the server
	args         []string
	readyPath    string
	httpAddr     string
	graphiteAddr string
	pickleAddr   string
	*process
}

// newServer prepares the server that the flag names.
func newServer(t *testing.T, dir string) *server {
	t.Helper()
	s := &server{t: t, dir: dir, httpAddr: freeAddr(t), graphiteAddr: freeAddr(t), pickleAddr: freeAddr(t)}
	data := filepath.Join(dir, "data")
	switch *serverKind {
	case "shale":
		s.program = shaleBinary(t)
		s.serving = s.program
		s.readyPath = "/ready"
		s.args = []string{"serve", "--data-dir", data, "--http-listen", s.httpAddr, "--graphite-listen", s.graphiteAddr, "--graphite-pickle-listen", s.pickleAddr, "--memory", "512MiB"}
		if *slowSync {
			s.serving = goBuild(t, "../..", "./bench/slow")
			s.args = append(s.args, "--sync-delay", "5ms")
		}
	case "victoria-metrics":
		s.serving = "/usr/bin/victoria-metrics"
		s.readyPath = "/health"
		s.args = []string{"-storageDataPath", data, "-httpListenAddr", s.httpAddr, "-graphiteListenAddr", s.graphiteAddr,
			"-search.latencyOffset", "0s", "-search.disableCache", "-search.maxQueryDuration", "1m"}
	default:
		t.Fatalf("-server is shale or victoria-metrics, not %q", *serverKind)
	}
	return s
}

// start runs the server and waits until it is ready.
func (s *server) start() {
	s.t.Helper()
	s.process = start(s.t, s.dir, "server", s.serving, s.args...)
	s.waitFor(s.t, s.url()+s.readyPath)
}

func (s *server) url() string { return "http://" + s.httpAddr }

func (s *server) graphiteHostPort() (host, port string) {
	host, port, err := net.SplitHostPort(s.graphiteAddr)
	if err != nil {
		s.t.Fatal(err)
	}
	return host, port
}

// shaleBinary returns the program that the flag names, or builds it.
func shaleBinary(t *testing.T) string {
	t.Helper()
	if *binary != "" {
		path, err := filepath.Abs(*binary)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	return goBuild(t, "../..", "./cmd/shale")
}

// builds are the programs that tests of this process have built, by folder and package: most need the same.
var builds sync.Map

// goBuild builds a program of the module in a folder once, in bin/test, and returns its path. It is linked
// again only if something has changed since an earlier process, such as the tests with Kafka, has built it.
func goBuild(t *testing.T, module, program string) string {
	t.Helper()
	name := filepath.Base(program)
	if program == "." {
		name = filepath.Base(module) + "-client"
	}
	once, _ := builds.LoadOrStore([2]string{module, program}, sync.OnceValues(func() (string, error) {
		path, err := filepath.Abs(filepath.Join("../../bin/test", name))
		if err != nil {
			return "", err
		}
		cmd := exec.Command("go", "build", "-o", path, program)
		cmd.Dir = module
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
		return path, nil
	}))
	path, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
