//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/client"
)

// otelModule is the module with the program that sends with the OpenTelemetry SDK.
const otelModule = "../otel"

// fromOtel is the data that the program reports to have sent.
type fromOtel struct {
	Records []struct {
		Time     int64
		Body     string
		Metadata map[string]string
	}
	Metrics map[string]float64
}

// TestOpenTelemetry lets the OpenTelemetry SDK push logs and metrics, and reads them back by LogQL and
// PromQL.
func TestOpenTelemetry(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about OTLP")
	}
	program := goBuild(t, otelModule, ".")
	base := *logsURL
	if base == "" {
		s := newServer(t, t.TempDir())
		s.start()
		base = s.url()
	}
	begun := time.Now().Add(-time.Hour)
	for i, c := range []struct {
		name, metrics string
		args          []string
	}{
		{"plain", "/otlp/v1/metrics", nil},
		{"gzip", "/api/v1/otlp/v1/metrics", []string{"-gzip"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := fmt.Sprintf("otel-%s-%d", c.name, time.Now().Unix()+int64(i))
			args := append([]string{"-service", service, "-logs", base + "/otlp/v1/logs"}, c.args...)
			if *logsURL == "" {
				args = append(args, "-metrics", base+c.metrics)
			}
			cmd := exec.Command(program, args...)
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			out, err := cmd.Output()
			var sent fromOtel
			if jsonErr := json.Unmarshal(out, &sent); err != nil || jsonErr != nil || complaints.Len() > 0 {
				t.Fatalf("%v, %v: %s", err, jsonErr, complaints.String())
			}
			eventually(t, "logs", func() error { return compareRecords(base, service, begun, &sent) })
			for expr, want := range sent.Metrics {
				eventually(t, expr, func() error { return compareValue(base, expr, want) })
			}
		})
	}
}

// compareRecords compares times, bodies, labels and structured metadata with the sent ones.
func compareRecords(base, service string, begun time.Time, sent *fromOtel) error {
	pages := &client.Pages{
		Server: api(base), Expr: fmt.Sprintf("{service_name=%q}", service), Forward: true, Metadata: true,
		From: begun.UnixNano(), To: time.Now().Add(time.Minute).UnixNano(),
	}
	_, got, err := pages.Request(context.Background(), 5000)
	if err != nil {
		return err
	}
	if len(got) != len(sent.Records) {
		return fmt.Errorf("%d lines, want %d", len(got), len(sent.Records))
	}
	byTime := map[int64]client.Line{}
	for _, l := range got {
		byTime[l.At] = l
	}
	labels := map[string]string{"service_name": service, "service_namespace": "shop", "service_instance_id": "i-1", "k8s_pod_name": "web-1"}
	for _, want := range sent.Records {
		l, ok := byTime[want.Time]
		switch {
		case !ok:
			return fmt.Errorf("no line at %d: %q", want.Time, want.Body)
		case string(l.Text) != want.Body:
			return fmt.Errorf("at %d: %q, want %q", want.Time, l.Text, want.Body)
		case !maps.Equal(l.Labels, labels):
			return fmt.Errorf("at %d: labels %v, want %v", want.Time, l.Labels, labels)
		}
		metadata := map[string]string{}
		for _, m := range l.Metadata {
			metadata[m.Name] = m.Value
		}
		for name, value := range want.Metadata {
			if metadata[name] != value {
				return fmt.Errorf("at %d: %s is %q in %v, want %q", want.Time, name, metadata[name], metadata, value)
			}
		}
		if metadata["detected_level"] == "" || metadata["observed_timestamp"] == "" || metadata["severity_number"] == "" {
			return fmt.Errorf("at %d: something is missing in %v", want.Time, metadata)
		}
	}
	return nil
}

// compareValue compares the one value of an expression.
func compareValue(base, expr string, want float64) error {
	got, err := api(base).Query(context.Background(), expr, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	if len(got) != 1 {
		return fmt.Errorf("%d series, want 1", len(got))
	}
	if v := math.Float64frombits(got[0].Value.Bits); v != want {
		return fmt.Errorf("%v, want %v", v, want)
	}
	return nil
}
