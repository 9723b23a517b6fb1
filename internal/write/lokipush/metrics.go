package lokipush

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/write/receive"
)

func newMetrics(reg prometheus.Registerer) *receive.Metrics {
	r := receive.NewRegistry(reg)
	return &receive.Metrics{
		Requests: r.Requests("shale_lokipush_requests_total",
			"Pushes of log lines, by form (protobuf, json) and status code of the response.", []string{"form", "code"}),
		Lines:     r.Counter("shale_lokipush_received_lines_total", "Log lines received by Loki push and durable."),
		BodyBytes: r.Counter("shale_lokipush_body_bytes_total", "Bytes of Loki push bodies read, as sent."),
		Seconds:   r.Seconds("shale_lokipush_request_seconds", "Time from the headers of a Loki push to its response.", nil),
	}
}
