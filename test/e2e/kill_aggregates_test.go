//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKillAggregates kills the server with SIGKILL while points of an aggregate are posted. The aggregate
// counts every acknowledged point, and at most those of the requests that got no response.
func TestKillAggregates(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about Shale's own promise")
	}
	s := newServer(t, t.TempDir())
	rules := filepath.Join(s.dir, "aggregation-rules.conf")
	if err := os.WriteFile(rules, []byte("all.hits (3600) = sum host.*.hits\nall.half (3600) = p50 host.*.hits\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.args = append(s.args, "--graphite.aggregation-rules", rules, "--graphite.write-back-frequency", "1s", "--graphite.forward-all", "off")
	s.start()
	const perRequest = 500
	var body strings.Builder
	for i := range perRequest {
		fmt.Fprintf(&body, "host.h%d.hits 1 %d\n", i, time.Now().Unix())
	}
	text := body.String() // the same interval in all rounds
	acked, unknown := 0, 0
	for round := range 3 {
		killed := time.AfterFunc(time.Second+time.Duration(round*137)*time.Millisecond, func() { _ = s.cmd.Process.Kill() })
		for {
			res, err := http.Post(s.url()+"/api/v1/write/graphite", "text/plain", strings.NewReader(text))
			if err != nil {
				unknown += perRequest
				break
			}
			res.Body.Close()
			if res.StatusCode != http.StatusNoContent {
				t.Fatalf("status %s", res.Status)
			}
			acked += perRequest
		}
		killed.Stop()
		<-s.done
		s.start()
	}
	var got, half float64
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if got, half = s.latest(t, "all.hits"), s.latest(t, "all.half"); got >= float64(acked) && half == 1 {
			break
		}
	}
	if got < float64(acked) || got > float64(acked+unknown) || half != 1 {
		t.Errorf("the sum is %v, want from %d to %d; the median is %v", got, acked, acked+unknown, half)
	}
	t.Logf("%d points acknowledged, %d unknown, %v counted", acked, unknown, got)
}

// latest returns the newest value of a Graphite target, or 0.
func (s *server) latest(t *testing.T, target string) (v float64) {
	t.Helper()
	res, err := http.Get(s.url() + "/render?format=json&noNullPoints=1&from=-2h&until=%2B1min&target=" + target)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var series []struct{ Datapoints [][2]float64 }
	if err := json.NewDecoder(res.Body).Decode(&series); err != nil {
		t.Fatal(err)
	}
	for _, one := range series {
		for _, p := range one.Datapoints {
			v = p[0]
		}
	}
	return v
}
