//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

var (
	kills      = flag.Int("kills", 2, "how often the server is killed for each protocol")
	killSeries = flag.Int("kill-series", 20_000, "series of the load during which the server is killed; a multiple of 10,000")
	killLoad   = flag.Duration("kill-load", 8*time.Second, "length of the load")
	killVerify = flag.Int("kill-verify", 1000, "series that are compared bit for bit after each kill")
	killMemory = flag.String("kill-memory", "1GiB", "memory budget of the server")
)

// TestKill kills the server with SIGKILL in the middle of a load, restarts it on the same folder, lets the
// load go on, and then reads every acknowledged sample.
func TestKill(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about Shale's own promise")
	}
	dir := t.TempDir()
	s := newServer(t, dir)
	s.args = append(s.args, "--memory", *killMemory, "--query.max-bytes", "90%", "--query.timeout", "5m")
	s.start()
	for i := range *kills {
		t.Run(fmt.Sprintf("remote-write-%d", i), func(t *testing.T) {
			s.killDuring(t, i, "remote-write", "--url", s.url()+"/api/v1/write",
				"--targets", strconv.Itoa(*killSeries/1000), "--metrics", "10", "--series", "100", "--seed", strconv.Itoa(100+i), "--rate", "0")
		})
		t.Run(fmt.Sprintf("graphite-%d", i), func(t *testing.T) {
			s.killDuring(t, i, "graphite", "--target", s.graphiteAddr, "--metrics-url", s.url()+"/metrics",
				"--agents", "10", "--metrics", strconv.Itoa(*killSeries/10), "--prefix", fmt.Sprintf("kill%d", i), "--connections", "1", "--rate", "200000")
		})
	}
}

// killDuring runs one load, kills the server in its middle and verifies.
func (s *server) killDuring(t *testing.T, i int, shape string, args ...string) {
	// s.t stays that of the whole test, since the server started here outlives the subtest.
	state := filepath.Join(s.dir, fmt.Sprintf("%s-%d.state", shape, i))
	load := exec.Command(s.program, append([]string{"load", shape, "--quiet", "--json", "--state", state, "--query-url", s.url(),
		"--duration", killLoad.String()}, args...)...)
	var out, loadErr bytes.Buffer
	load.Stdout, load.Stderr = &out, &loadErr
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	// A random time in the middle, so that flushes and merges are interrupted at different points.
	time.Sleep(*killLoad/2 + time.Duration(i*377%1000)*time.Millisecond)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.done
	began := time.Now()
	s.start()
	t.Logf("ready %.2f s after the kill", time.Since(began).Seconds())
	if err := load.Wait(); err != nil {
		t.Fatalf("load: %v\n%s", err, loadErr.Bytes())
	}
	verify := exec.Command(s.program, "load", shape, "--verify-only", "--quiet", "--json", "--state", state, "--query-url", s.url(),
		"--verify", strconv.Itoa(*killVerify), "--verify-counts")
	verify.Stderr = &loadErr
	text, err := verify.Output()
	var summary map[string]any
	if jsonErr := json.Unmarshal(text, &summary); jsonErr != nil {
		t.Fatalf("verify: %v, %v\n%s\n%s", err, jsonErr, text, loadErr.Bytes())
	}
	if err != nil {
		t.Errorf("verify: %v\n%s\n%s", err, text, loadErr.Bytes())
	}
	t.Logf("verified: %v", summary["verification"])
}
