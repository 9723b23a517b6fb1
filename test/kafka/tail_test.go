//go:build e2e

package kafka

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testTail follows lines with Loki's logcli over a query process, while an ingester is killed and comes back:
// logcli connects again, and shows every line.
func testTail(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "of-tail", 2)
	gateway := c.process(t, "gateway")
	ingesters := []*process{c.process(t, "ingest", "--kafka.partitions", "0", "--ship-every", "2s"), c.process(t, "ingest", "--kafka.partitions", "1", "--ship-every", "1h")}
	query := c.process(t, "query", "--ingesters", ingesters[0].addr+","+ingesters[1].addr)
	for _, p := range append(ingesters, gateway, query) {
		p.start()
	}
	find := exec.Command("go", "tool", "-n", "logcli")
	find.Dir = "../logcli"
	program, err := find.Output()
	if err != nil {
		t.Fatalf("building logcli: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, strings.TrimSpace(string(program)), "--addr", "http://"+query.addr, "--quiet", "query", `{app="tailed"} |= "line"`, "-o", "raw", "--tail", "--limit", "5000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	complaints, err := os.Create(filepath.Join(t.TempDir(), "complaints"))
	if err != nil {
		t.Fatal(err)
	}
	defer complaints.Close()
	cmd.Stderr = complaints
	said := func() string {
		text, _ := os.ReadFile(complaints.Name())
		return string(text)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	got := make(chan string, 10_000)
	go func() {
		defer close(got)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			got <- lines.Text()
		}
	}()
	push := func(text string) { // of eight streams, which both partitions have some of
		var streams []string
		for i := range 8 {
			streams = append(streams, fmt.Sprintf(`{"stream":{"app":"tailed","pod":"%d"},"values":[["%d","%s of %d"]]}`, i, time.Now().UnixNano(), text, i))
		}
		gateway.push("/loki/api/v1/push", "application/json", []byte(`{"streams":[`+strings.Join(streams, ",")+`]}`))
	}
	seen := map[string]bool{}
	all := func(text string) bool {
		for i := range 8 {
			if !seen[fmt.Sprintf("%s of %d", text, i)] {
				return false
			}
		}
		return true
	}
	await := func(text string, again bool) {
		t.Helper()
		for !all(text) {
			select {
			case line, ok := <-got:
				if !ok {
					t.Fatalf("logcli ended: %s", said())
				}
				seen[line] = true
			case <-time.After(time.Second):
				if again {
					push(text)
				}
			case <-ctx.Done():
				t.Fatalf("%s: not all lines came: %d, %s", text, len(seen), said())
			}
		}
	}
	// Lines pushed before it listens may be sent or not.
	push("line first")
	await("line first", true)
	for i := range 20 {
		push(fmt.Sprint("line early ", i))
	}
	for i := range 20 {
		await(fmt.Sprint("line early ", i), false)
	}
	ingesters[0].kill()
	// Lines of the other partition that came before the cut would be later than those that it misses.
	waitFor(t, "a connection that was cut", func() bool { return strings.Contains(said(), "Connecting again") })
	push("line while one is away")
	ingesters[0].start()
	for i := range 20 {
		push(fmt.Sprint("line late ", i))
	}
	await("line while one is away", false)
	for i := range 20 {
		await(fmt.Sprint("line late ", i), false)
	}
	// One with the labels of streams, and rows, from Kafka and the bucket.
	ingesters[1].stop()
	waitFor(t, "another one", func() bool { return strings.Count(said(), "Connecting again") > 1 })
	ingesters[1].start()
	push("line last")
	await("line last", false)
}
