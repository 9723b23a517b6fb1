//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// otelModule is the module with the program that sends with the OpenTelemetry SDK.
const otelModule = "../otel"

// fromOtel is what that program says to have sent.
type fromOtel struct {
	Records []struct {
		Time     int64
		Body     string
		Metadata map[string]string
	}
	Metrics map[string]float64
}

// TestOpenTelemetry lets the OpenTelemetry SDK push logs and metrics, and reads them back by LogQL and PromQL.
func TestOpenTelemetry(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("it is about OTLP")
	}
	program := filepath.Join(t.TempDir(), "otel")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = otelModule
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
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

// readLine is a line as query_range gives it.
type readLine struct {
	at               int64
	text             string
	labels, metadata map[string]string
}

// readLines asks for the oldest lines of a time, structured metadata apart from labels.
func readLines(base, query string, from, to time.Time) (lines []readLine, err error) {
	form := url.Values{
		"query": {query}, "start": {strconv.FormatInt(from.UnixNano(), 10)}, "end": {strconv.FormatInt(to.UnixNano(), 10)},
		"limit": {"5000"}, "direction": {"forward"},
	}
	req, err := http.NewRequest(http.MethodGet, base+"/loki/api/v1/query_range?"+form.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Loki-Response-Encoding-Flags", "categorize-labels")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: HTTP %d, %v: %.300s", query, resp.StatusCode, err, body)
	}
	var a struct {
		Data struct {
			Result []struct {
				Stream map[string]string
				Values [][]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	for _, r := range a.Data.Result {
		for _, v := range r.Values {
			l := readLine{labels: r.Stream}
			var at string
			var extra struct {
				StructuredMetadata map[string]string `json:"structuredMetadata"`
			}
			if err := json.Unmarshal(v[0], &at); err != nil {
				return nil, err
			}
			if err := json.Unmarshal(v[1], &l.text); err != nil {
				return nil, err
			}
			if len(v) > 2 {
				if err := json.Unmarshal(v[2], &extra); err != nil {
					return nil, err
				}
			}
			if l.at, err = strconv.ParseInt(at, 10, 64); err != nil {
				return nil, err
			}
			l.metadata = extra.StructuredMetadata
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// compareRecords compares times, bodies, labels and structured metadata with what was sent.
func compareRecords(base, service string, begun time.Time, sent *fromOtel) error {
	got, err := readLines(base, fmt.Sprintf("{service_name=%q}", service), begun, time.Now().Add(time.Minute))
	if err != nil {
		return err
	}
	if len(got) != len(sent.Records) {
		return fmt.Errorf("%d lines, want %d", len(got), len(sent.Records))
	}
	byTime := map[int64]readLine{}
	for _, l := range got {
		byTime[l.at] = l
	}
	labels := map[string]string{"service_name": service, "service_namespace": "shop", "service_instance_id": "i-1", "k8s_pod_name": "web-1"}
	for _, want := range sent.Records {
		l, ok := byTime[want.Time]
		switch {
		case !ok:
			return fmt.Errorf("no line at %d: %q", want.Time, want.Body)
		case l.text != want.Body:
			return fmt.Errorf("at %d: %q, want %q", want.Time, l.text, want.Body)
		case !maps.Equal(l.labels, labels):
			return fmt.Errorf("at %d: labels %v, want %v", want.Time, l.labels, labels)
		}
		for name, value := range want.Metadata {
			if l.metadata[name] != value {
				return fmt.Errorf("at %d: %s is %q in %v, want %q", want.Time, name, l.metadata[name], l.metadata, value)
			}
		}
		if l.metadata["detected_level"] == "" || l.metadata["observed_timestamp"] == "" || l.metadata["severity_number"] == "" {
			return fmt.Errorf("at %d: something is missing in %v", want.Time, l.metadata)
		}
	}
	return nil
}

// compareValue compares the one value of an expression.
func compareValue(base, expr string, want float64) error {
	var data struct {
		Result []struct{ Value [2]json.RawMessage }
	}
	if err := call(base, "/api/v1/query", url.Values{"query": {expr}}, &data); err != nil {
		return err
	}
	if len(data.Result) != 1 {
		return fmt.Errorf("%d series, want 1", len(data.Result))
	}
	if got := string(data.Result[0].Value[1]); got != strconv.Quote(strconv.FormatFloat(want, 'g', -1, 64)) {
		return fmt.Errorf("%s, want %v", got, want)
	}
	return nil
}
