package otlp

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/receive"
)

// lookback returns Prometheus's LookbackDelta, half of which is the distance between samples of
// target_info when the points of a request are far apart. It grows with the span of the points, to
// bound the number of those samples.
func lookback(span time.Duration) time.Duration {
	const most = 100
	return max(5*time.Minute, span/most*2)
}

// storeMetrics translates a body of metrics and pushes its samples.
func (h *Handler) storeMetrics(r *receive.Request, f form) (receive.Response, error) {
	md, err := readMetrics(r, f, h.metricsShape)
	if err != nil {
		return receive.Response{}, err
	}
	var left write.Rejections
	limits := h.o.Sink.Limits(r.Tenant)
	p := newPruner(limits, h.o.Sink.Now(), &left)
	p.prune(md)
	b := h.o.Sink.Batch(r.Tenant, model.Metrics)
	defer h.o.Sink.Recycle(b)
	a := &appender{batch: b, reserve: r.Reserve, left: &left, buckets: limits.Buckets()}
	a.keys.Seed, a.keys.Signal = h.o.Sink.Seed(), model.Metrics
	a.room.Start(b, seriesBytes, rowBytes, r.Reserve)
	b.Source = a
	if err := h.translate(r, md, p.span(), a); err != nil {
		return receive.Response{}, err
	}
	_, left, err = r.Push(b, left)
	if err != nil {
		return receive.Response{}, err
	}
	for i := range a.families {
		f := &a.families[i]
		h.o.Sink.Metadata(r.Tenant, []byte(f.name), f.typ, []byte(f.help), []byte(f.unit))
	}
	return report(left), nil
}

// readMetrics decodes the body into a tree of objects.
func readMetrics(r *receive.Request, f form, s *shape) (pmetric.Metrics, error) {
	req := pmetricotlp.NewExportRequest()
	size, read, what := s.treeSize, req.UnmarshalProto, "protobuf"
	if f.json {
		size, read, what = jsonTreeSize, req.UnmarshalJSON, "JSON"
	}
	n, err := size(r.Body)
	if err != nil {
		return pmetric.Metrics{}, err
	}
	if err := r.Reserve(n); err != nil {
		return pmetric.Metrics{}, err
	}
	if err := read(r.Body); err != nil {
		return pmetric.Metrics{}, fmt.Errorf("%w: OTLP body: invalid %s for metrics: %w", model.ErrInvalid, what, err)
	}
	return req.Metrics(), nil
}

// translate converts metrics to samples with Prometheus's own code and default settings.
func (h *Handler) translate(r *receive.Request, md pmetric.Metrics, span time.Duration, a *appender) error {
	c := prometheusremotewrite.NewPrometheusConverter(a)
	_, err := c.FromMetrics(r.Context, md, prometheusremotewrite.Settings{
		AddMetricSuffixes: true, LabelNameUnderscoreSanitization: true, LabelNamePreserveMultipleUnderscores: true,
		PromoteScopeMetadata: h.o.ScopeLabels, LookbackDelta: lookback(span),
	})
	if a.err != nil {
		return a.err
	}
	if ctx := r.Context.Err(); ctx != nil {
		return fmt.Errorf("%w: the client closed the connection: %w", model.ErrTransient, ctx)
	}
	// Each error is about one metric that cannot be translated.
	for _, err := range flatten(err) {
		a.left.Add(write.ReasonMetric, write.Counts{Samples: 1}, err.Error)
	}
	return nil
}

// flatten splits joined errors.
func flatten(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &joined):
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
