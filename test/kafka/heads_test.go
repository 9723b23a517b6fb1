//go:build e2e

package kafka

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestHeads measures what partitions cost an ingester and the compactor: with FIGURES=1, like TestFigures.
// One process has 1, 4, 16 or 64 of them, each with a head. The same series are written and shipped several
// times. The blocks of 16 are then merged by a compactor with little memory.
func TestHeads(t *testing.T) {
	if os.Getenv("FIGURES") == "" {
		t.Skip("FIGURES is not set")
	}
	broker := start(t)
	for _, partitions := range []int{1, 4, 16, 64} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			topic, memory := fmt.Sprintf("heads-%d", partitions), "512MiB"
			if partitions == 64 {
				memory = "128MiB" // each head has 200 KiB for rows
			}
			c := newCluster(t, broker, topic, partitions)
			c.flags = append(c.flags, "--max-age", "0", "--retention", "0", "--memory", memory)
			gateway, ingest, compact := c.process(t, "gateway"), c.process(t, "ingest", "--ship-every", "1h"), c.process(t, "compact", "--memory", "128MiB")
			query := c.process(t, "query", "--ingesters", ingest.addr)
			gateway.start()
			query.start()
			defer gateway.stop()
			defer query.stop()
			begin := time.Now().Add(-72 * time.Hour).Truncate(24 * time.Hour) // its day is over
			parts := 3
			if partitions == 16 {
				parts = 5 // more than 64 blocks wait for the end of their day, and are merged
			}
			for part := range parts {
				ingest.start()
				waitFor(t, "partitions", func() bool { return readyOf(ingest, topic, "ready") == partitions })
				empty := resident(ingest)
				load := []string{"load", "remote-write", "--quiet", "--url", "http://" + gateway.addr, "--targets", "50", "--metrics", "100", "--series", "10", "--rounds", "20", "--rate", "0", "--step", "15s",
					"--value", "counter", "--batch", "2000", "--start", begin.Add(time.Duration(part) * 5 * time.Minute).Format(time.RFC3339)}
				if out, err := exec.Command(buildShale(t), load...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				waitFor(t, "the latest", func() bool {
					s, _ := query.get("/api/v1/query?query=up", "X-Read-Consistency", "strong")
					return s == http.StatusOK
				})
				heap := counter("go_memstats_heap_inuse_bytes", ingest)
				t.Logf("%d partitions, part %d, 50,000 series, a million samples: RSS %.0f MiB without rows, %.0f MiB now, heap %.0f MiB, CPU %.2f s", partitions, part,
					empty, resident(ingest), heap/(1<<20), counter("process_cpu_seconds_total", ingest))
				began := time.Now()
				ingest.stop()
				t.Logf("it ships and stops in %v", time.Since(began).Round(10*time.Millisecond))
			}
			if partitions != 16 {
				return
			}
			compact.start()
			defer compact.stop()
			waitFor(t, "a merge", func() bool {
				return counter("shale_compact_merges_total", compact) > 0 && counter("shale_compact_last_run_timestamp_seconds", compact) > 0
			})
			_, text := compact.get("/metrics")
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "shale_compact_") && !strings.Contains(line, "bucket{") && !strings.HasSuffix(line, " 0\n") {
					t.Log(strings.TrimSpace(line))
				}
			}
			t.Logf("the compactor: RSS %.0f MiB, CPU %.2f s, %v requests to the bucket", resident(compact), counter("process_cpu_seconds_total", compact), counter("shale_bucket_requests_total", compact))
		})
	}
}
