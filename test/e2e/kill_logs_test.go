//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/load/verify"
)

var (
	logKills    = flag.Int("log-kills", 2, "how often the server is killed while lines are pushed")
	logKillSeed = flag.Uint64("log-kill-seed", 0, "draws the moments of the kills; 0: a new one, which the test tells")
	logKillLoad = flag.Duration("log-kill-load", 6*time.Second, "how long each load lasts")
)

// TestKillLogs kills the server with SIGKILL while lines are pushed, twice in each load, the second time soon
// after the restart. Then it reads every acknowledged line, once and in order. At the end it reads the lines
// of all loads again, after they have been merged and shipped.
func TestKillLogs(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about Shale's own promise")
	}
	seed := *logKillSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-log-kill-seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 1))
	s := newServer(t, t.TempDir())
	s.args = append(s.args, "--memory", *killMemory)
	s.start()
	const perLoad = 2
	loads := (*logKills + perLoad - 1) / perLoad
	for i := range loads {
		t.Run(fmt.Sprintf("load-%d", i), func(t *testing.T) {
			s.killPushing(t, i, draw, min(perLoad, *logKills-i*perLoad))
			s.verifyLines(t, i)
		})
	}
	t.Run("from the bucket", func(t *testing.T) {
		s.stop(t)
		s.putAway(t)
		s.start()
		for i := range loads {
			s.verifyLines(t, i)
		}
	})
}

func (s *server) stateOfLines(i int) string {
	return filepath.Join(s.dir, fmt.Sprintf("lines-%d.state", i))
}

// killPushing kills the server a number of times while lines are pushed.
func (s *server) killPushing(t *testing.T, i int, draw *rand.Rand, kills int) {
	// The loads are hard in different ways: a steady pace, as fast as possible in many streams, lines out of
	// order that arrive twice.
	shape := [...]string{
		"--rate 15",
		"--rate 30 --streams 4000 --per-node 100 --metadata 0.5",
		"--rate 10 --ooo 0.1:20m --dup 0.1 --equal-times 0.2 --metadata 0.2 --format json",
	}[i%3]
	push := exec.Command(s.program, append([]string{
		"load", "logs", "--quiet", "--json", "--state", s.stateOfLines(i), "--url", s.url() + "/loki/api/v1/push", "--seed", strconv.Itoa(100 + i),
		"--duration", logKillLoad.String(),
	}, strings.Fields(shape)...)...)
	var out, complaints bytes.Buffer
	push.Stdout, push.Stderr = &out, &complaints
	if err := push.Start(); err != nil {
		t.Fatal(err)
	}
	wait := time.Duration(draw.Int64N(int64(*logKillLoad) / 2))
	for range kills {
		time.Sleep(wait)
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.done
		began := time.Now()
		s.start()
		t.Logf("killed after %.2f s, ready %.2f s later", wait.Seconds(), time.Since(began).Seconds())
		wait = time.Duration(draw.Int64N(int64(*logKillLoad) / 4))
	}
	if err := push.Wait(); err != nil {
		t.Fatalf("load: %v\n%s", err, complaints.Bytes())
	}
}

// verifyLines reads back all lines of a load.
func (s *server) verifyLines(t *testing.T, i int) {
	t.Helper()
	readBack := exec.Command(s.program, "load", "logs", "--verify-only", "--quiet", "--json", "--state", s.stateOfLines(i), "--query-url", s.url())
	var complaints bytes.Buffer
	readBack.Stderr = &complaints
	text, err := readBack.Output()
	var report struct {
		Lines *verify.Lines `json:"verification_of_lines"`
	}
	if jsonErr := json.Unmarshal(text, &report); jsonErr != nil || report.Lines == nil {
		t.Fatalf("verify: %v, %v\n%s\n%s", err, jsonErr, text, complaints.Bytes())
	}
	if err != nil || !report.Lines.OK() {
		t.Errorf("load %d: %v\n%s\n%s", i, err, text, complaints.Bytes())
	}
	t.Logf("load %d: %d lines equal, %d missing, %d doubled, %d present without an acknowledgement", i, report.Lines.Equal, report.Lines.Missing,
		report.Lines.Doubled, report.Lines.Unacked)
}
