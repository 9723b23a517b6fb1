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

// TestKillRelay kills a relay and its destination in turn with SIGKILL while points are posted to the relay.
// The destination has every acknowledged point in the end. All of them are names of their own, so that a
// missing one shows.
func TestKillRelay(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about Shale's own promise")
	}
	for _, protocol := range []string{"line", "pickle"} {
		t.Run(protocol, func(t *testing.T) {
			to := newServer(t, t.TempDir())
			from := newServer(t, t.TempDir())
			from.program, from.serving = to.program, to.serving
			address := to.graphiteAddr
			if protocol == "pickle" {
				address = to.pickleAddr
			}
			conf := filepath.Join(from.dir, "carbon.conf")
			text := "[relay]\nRELAY_METHOD = consistent-hashing\nDESTINATIONS = " + address + "\nDESTINATION_PROTOCOL = " + protocol + "\n"
			if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			from.args = append(from.args, "--graphite.relay", conf, "--graphite.relay-store", "off")
			to.start()
			from.start()
			var acked []string
			unknown := 0
			for round := range 6 {
				killed := from
				if round%2 == 1 {
					killed = to
				}
				end := time.Now().Add(1200*time.Millisecond + time.Duration(round*137)*time.Millisecond)
				for i := 0; time.Now().Before(end); i++ {
					names, ok := from.postNames(fmt.Sprintf("kill.r%d.b%d", round, i))
					if !ok {
						t.Fatal("the relay does not take points")
					}
					acked = append(acked, names...)
				}
				time.AfterFunc(20*time.Millisecond, func() { _ = killed.cmd.Process.Kill() })
				for i := range 20 {
					names, ok := from.postNames(fmt.Sprintf("kill.r%d.last%d", round, i))
					if !ok {
						unknown += len(names)
						break
					}
					acked = append(acked, names...)
				}
				<-killed.done
				killed.start()
			}
			missing := 0
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				if missing = to.missing(t, acked); missing == 0 {
					break
				}
			}
			if missing > 0 {
				t.Errorf("%d of %d acknowledged points are missing", missing, len(acked))
			}
			t.Logf("%d points acknowledged, %d unknown, %d missing", len(acked), unknown, missing)
		})
	}
}

// postNames posts points with names that begin alike, and reports whether they were acknowledged.
func (s *server) postNames(prefix string) (names []string, ok bool) {
	var body strings.Builder
	for i := range 100 {
		names = append(names, fmt.Sprintf("%s.p%d", prefix, i))
		fmt.Fprintf(&body, "%s %d %d\n", names[i], i, time.Now().Unix())
	}
	res, err := http.Post(s.url()+"/api/v1/write/graphite", "text/plain", strings.NewReader(body.String()))
	if err != nil {
		return names, false
	}
	res.Body.Close()
	return names, res.StatusCode == http.StatusNoContent
}

// missing returns how many names the server does not have.
func (s *server) missing(t *testing.T, names []string) (missing int) {
	t.Helper()
	res, err := http.Get(s.url() + "/metrics/index.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var all []string
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	has := make(map[string]bool, len(all))
	for _, name := range all {
		has[name] = true
	}
	for _, name := range names {
		if !has[name] {
			missing++
		}
	}
	return missing
}
