package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
)

// sent is the data that was sent.
type sent struct {
	Records []record           `json:"records"`
	Metrics map[string]float64 `json:"metrics"` // the expected value by PromQL expression
}

// record is a log record.
type record struct {
	Time     int64             `json:"time"`
	Body     string            `json:"body"`
	Metadata map[string]string `json:"metadata"` // required entries; there may be more
}

func main() {
	logsURL := flag.String("logs", "", "endpoint for logs; none if empty")
	metricsURL := flag.String("metrics", "", "endpoint for metrics; none if empty")
	records := flag.Int("records", 500, "log records to send")
	gzip := flag.Bool("gzip", false, "compress what is sent")
	service := flag.String("service", "otel-e2e", "name of the service")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := send(ctx, *service, *logsURL, *metricsURL, *records, *gzip)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "otel:", err)
		os.Exit(1)
	}
}

func send(ctx context.Context, service, logsURL, metricsURL string, records int, gzip bool) (*sent, error) {
	res := resource.NewSchemaless(
		attribute.String("service.name", service), attribute.String("service.namespace", "shop"), attribute.String("service.instance.id", "i-1"),
		attribute.String("k8s.pod.name", "web-1"), attribute.String("host.name", "h1"), attribute.Int("process.pid", 4711),
	)
	out := &sent{Metrics: map[string]float64{}}
	if logsURL != "" {
		if err := sendLogs(ctx, res, logsURL, records, gzip, out); err != nil {
			return nil, fmt.Errorf("logs: %w", err)
		}
	}
	if metricsURL != "" {
		if err := sendMetrics(ctx, res, metricsURL, gzip, service, out); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return out, nil
}

// sendLogs sends records with bodies, severities and attributes of several kinds.
func sendLogs(ctx context.Context, res *resource.Resource, url string, n int, gzip bool, out *sent) (err error) {
	opts := []otlploghttp.Option{otlploghttp.WithEndpointURL(url)}
	if gzip {
		opts = append(opts, otlploghttp.WithCompression(otlploghttp.GzipCompression))
	}
	exporter, err := otlploghttp.New(ctx, opts...)
	if err != nil {
		return err
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(res), sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter, sdklog.WithMaxQueueSize(n+1))))
	defer func() { err = errors.Join(err, provider.Shutdown(ctx)) }()
	logger := provider.Logger("e2e/scope", log.WithInstrumentationVersion("1.2.3"))
	begin := time.Now().Add(-2 * time.Minute)
	for i := range n {
		at := begin.Add(time.Duration(i)*100*time.Millisecond + time.Duration(i))
		span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 15: byte(i)}, SpanID: trace.SpanID{2, 7: byte(i)}, TraceFlags: trace.FlagsSampled})
		severity := []log.Severity{log.SeverityInfo, log.SeverityWarn, log.SeverityError, log.SeverityDebug}[i%4]
		text := []string{"INFO", "WARN", "ERROR", "DEBUG"}[i%4]
		var r log.Record
		r.SetTimestamp(at)
		r.SetObservedTimestamp(at.Add(time.Second))
		r.SetSeverity(severity)
		r.SetSeverityText(text)
		body := fmt.Sprintf("order %d was \"accepted\" <ünïcode>\tand so on", i)
		r.SetBody(attribute.StringValue(body))
		r.AddAttributes(attribute.Int("http.status", 200+i%3), attribute.Bool("cached", i%2 == 0), attribute.Float64("ratio", 0.25),
			attribute.Map("user", attribute.String("id", fmt.Sprint(i%10)), attribute.String("plan", "pro")))
		logger.Emit(trace.ContextWithSpanContext(ctx, span), r)
		out.Records = append(out.Records, record{at.UnixNano(), body, map[string]string{
			"severity_text": text, "http_status": fmt.Sprint(200 + i%3), "cached": fmt.Sprint(i%2 == 0), "ratio": "0.25", "user_id": fmt.Sprint(i % 10), "user_plan": "pro",
			"trace_id": span.TraceID().String(), "span_id": span.SpanID().String(), "scope_name": "e2e/scope", "scope_version": "1.2.3", "host_name": "h1", "process_pid": "4711",
		}})
	}
	return provider.ForceFlush(ctx)
}

// sendMetrics sends a counter, a gauge, a histogram of each kind, once.
func sendMetrics(ctx context.Context, res *resource.Resource, url string, gzip bool, service string, out *sent) (err error) {
	opts := []otlpmetrichttp.Option{otlpmetrichttp.WithEndpointURL(url)}
	if gzip {
		opts = append(opts, otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression))
	}
	exporter, err := otlpmetrichttp.New(ctx, opts...)
	if err != nil {
		return err
	}
	exponential := sdkmetric.NewView(sdkmetric.Instrument{Name: "e2e.latency"},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}})
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(res), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithInterval(time.Hour))), sdkmetric.WithView(exponential))
	defer func() { err = errors.Join(err, provider.Shutdown(ctx)) }()
	meter := provider.Meter("e2e/scope")
	requests, err1 := meter.Int64Counter("e2e.requests", metric.WithDescription("Requests."))
	load, err2 := meter.Float64Gauge("e2e.load")
	sizes, err3 := meter.Float64Histogram("e2e.size", metric.WithUnit("By"), metric.WithExplicitBucketBoundaries(10, 100, 1000))
	latency, err4 := meter.Float64Histogram("e2e.latency", metric.WithUnit("s"))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	for i := range 100 {
		requests.Add(ctx, int64(i), metric.WithAttributes(attribute.String("http.route", []string{"/a", "/b"}[i%2])))
		sizes.Record(ctx, float64(i*20))
		latency.Record(ctx, float64(i+1)/1000)
	}
	load.Record(ctx, 0.75)
	job := fmt.Sprintf(`{job="shop/%s",instance="i-1"`, service)
	out.Metrics["e2e_requests_total"+job+`,http_route="/a"}`] = 2450
	out.Metrics["e2e_requests_total"+job+`,http_route="/b"}`] = 2500
	out.Metrics["e2e_load"+job+"}"] = 0.75
	out.Metrics["e2e_size_bytes_count"+job+"}"] = 100
	out.Metrics["e2e_size_bytes_sum"+job+"}"] = 99_000
	out.Metrics["e2e_size_bytes_bucket"+job+`,le="100"}`] = 6
	out.Metrics["histogram_count(e2e_latency_seconds"+job+"})"] = 100
	return provider.ForceFlush(ctx)
}
