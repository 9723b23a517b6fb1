package otlp

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/write/receive"
)

func newMetrics(reg prometheus.Registerer) *receive.Metrics {
	r := receive.NewRegistry(reg)
	return &receive.Metrics{
		Requests: r.Requests("shale_otlp_requests_total",
			"OTLP requests, by signal (logs, metrics), form (protobuf, json) and status code of the response.", []string{"signal", "form", "code"}),
		Lines:     r.Counter("shale_otlp_received_lines_total", "Log lines received by OTLP and durable."),
		Samples:   r.Counter("shale_otlp_received_samples_total", "Float and histogram samples received by OTLP and durable."),
		Exemplars: r.Counter("shale_otlp_received_exemplars_total", "Exemplars received by OTLP and durable."),
		BodyBytes: r.Counter("shale_otlp_body_bytes_total", "Bytes of OTLP bodies read, as sent."),
		Seconds:   r.Seconds("shale_otlp_request_seconds", "Time from the headers of an OTLP request to its response, by signal.", []string{"signal"}),
	}
}
