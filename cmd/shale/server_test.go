package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/logtest"
	"github.com/shaledb/shale/test/ports"
)

// startServer runs a server until the test ends.
func startServer(t *testing.T, more ...string) (url string) {
	t.Helper()
	addrs, err := ports.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	addr := addrs[0]
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan int, 1)
	var log logtest.Buffer
	args := []string{"serve", "--data-dir", t.TempDir(), "--memory", "128MiB", "--http-listen", addr, "--graphite-listen", "127.0.0.1:0", "--graphite-pickle-listen", "127.0.0.1:0"}
	args = append(args, more...)
	go func() { done <- run(ctx, args, &process{stdout: &log, stderr: &log}) }()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitOK {
			t.Errorf("the server ended with %d: %s", code, log.String())
		}
	})
	url = "http://" + addr
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := (&client.Server{URL: url}).Get(t.Context(), "ready", nil); err == nil {
			return url
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not ready: %s", log.String())
		}
	}
}

// fill stores n lines, a second apart until at, of each app and host, with a level in structured metadata.
func fill(t *testing.T, url, tenant string, at time.Time, n int, apps ...string) {
	t.Helper()
	var lines []client.Line
	for _, app := range apps {
		for i := range n {
			lines = append(lines, client.Line{
				At: at.Add(-time.Duration(n-1-i) * time.Second).UnixNano(), Text: fmt.Appendf(nil, "line %d of %s", i, app),
				Labels: map[string]string{"app": app, "host": fmt.Sprint("h", i%2), "env": "prod"},
			})
		}
	}
	if err := (&client.Server{URL: url, Tenant: tenant}).PushLines(t.Context(), lines); err != nil {
		t.Fatal(err)
	}
}

// measure stores a sample of a metric in the format of OTLP's JSON, which needs no encoder.
func measure(t *testing.T, url, tenant string, at time.Time, metric string, labels ...string) {
	t.Helper()
	var attributes bytes.Buffer
	for i := 0; i < len(labels); i += 2 {
		if i > 0 {
			attributes.WriteByte(',')
		}
		value, err := json.Marshal(labels[i+1])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&attributes, `{"key":%q,"value":{"stringValue":%s}}`, labels[i], value)
	}
	body := fmt.Sprintf(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":%q,"gauge":{"dataPoints":[{"asDouble":1,"timeUnixNano":"%d","attributes":[%s]}]}}]}]}]}`,
		metric, at.UnixNano(), attributes.String())
	if _, err := (&client.Server{URL: url, Tenant: tenant}).Post(t.Context(), "otlp/v1/metrics", http.Header{"Content-Type": {"application/json"}}, []byte(body)); err != nil {
		t.Fatal(err)
	}
}
