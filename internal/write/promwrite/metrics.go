package promwrite

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/write/receive"
)

func newMetrics(reg prometheus.Registerer) *receive.Metrics {
	r := receive.NewRegistry(reg)
	return &receive.Metrics{
		Requests: r.Requests("shale_promwrite_requests_total",
			"Remote write requests, by version of remote write (1.0, 2.0) and status code of the response.", []string{"version", "code"}),
		Samples:   r.Counter("shale_promwrite_received_samples_total", "Float and histogram samples received by remote write and durable."),
		Exemplars: r.Counter("shale_promwrite_received_exemplars_total", "Exemplars received by remote write and durable."),
		BodyBytes: r.Counter("shale_promwrite_body_bytes_total", "Bytes of remote write bodies read, as sent."),
		Seconds:   r.Seconds("shale_promwrite_request_seconds", "Time from the headers of a remote write request to its response.", nil),
	}
}
