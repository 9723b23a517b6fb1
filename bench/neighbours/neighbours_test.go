//go:build e2e

package neighbours

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/bench/system"
)

const limits = `defaults:
  limits: {tenant-samples: 20000, tenant-burst: 1s, tenant-new-series: 500, tenant-requests: 16, tenant-request-bytes: 8MiB, body-bytes: 4MiB, label-value-bytes: 1KiB}
  query: {tenant-concurrent: 4, max-samples: 1000000}
`

// TestNeighbours lets one tenant misbehave in each way. It gets the status that says so, and the others lose
// nothing: none of their requests is refused, and all that was acknowledged is there.
func TestNeighbours(t *testing.T) {
	dir := t.TempDir()
	program, file := filepath.Join(dir, "shale"), filepath.Join(dir, "tenants.yaml")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/shaledb/shale/cmd/shale").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	if err := os.WriteFile(file, []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}
	sys, err := system.New(t.Context(), "shale", system.Shale, program, []string{"--tenants.file", file, "--query.max-series=2000000"})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := system.Start(t.Context(), sys, system.Options{Dir: filepath.Join(dir, "data"), Memory: "512MiB"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
	}()
	url := "http://" + srv.HTTP
	var table, log bytes.Buffer
	err = Run(t.Context(), Options{
		URL: url, Tenants: 49, Rounds: 1, Phase: 3 * time.Second, Ways: Ways(), Log: &log,
		Misbehave: func(ctx context.Context, w *Way) (map[int]int, error) { return w.Misbehave(ctx, url), nil },
	}, &table)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s%s", table.String(), log.String())
	// A wide query is refused for what it would read, or ends when others need its memory or its time is over.
	for way, status := range map[string]string{
		"rate": "429", "series": "429", "labels": "400", "bodies": "413", "slow bodies": "429", "wide query": "(422|503)", "query flood": "429", "tenant names": "204",
	} {
		if strings.Contains(table.String(), "| "+way+" |  |") { // on a machine with much other work
			t.Logf("%s: no response came in time", way)
			continue
		}
		if !regexp.MustCompile(`(?m)^\| ` + way + ` \| [^|]*` + status + `: [1-9]`).Match(table.Bytes()) {
			t.Errorf("%s: no response was %s", way, status)
		}
	}
	if !regexp.MustCompile(`of [1-9]\d+ acknowledged samples 0 are missing, and 0 requests were refused`).Match(table.Bytes()) {
		t.Error("the others were hurt")
	}
}
