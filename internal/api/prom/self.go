package prom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/prometheus/util/features"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/shaledb/shale/internal/api"
)

// selfMetrics returns the metrics of Shale itself as JSON.
func (h *Handler) selfMetrics(r *api.Request) (*api.Response, error) {
	var named *regexp.Regexp
	if pattern := r.Form.Get("metric_name_pattern"); pattern != "" {
		if err := (&regexCharge{quota: r.Quota}).pattern(pattern); err != nil {
			return nil, err
		}
		var err error
		if named, err = regexp.Compile("^(?:" + pattern + ")$"); err != nil {
			return nil, badData("invalid metric_name_pattern: %w", err)
		}
	}
	var texts bytes.Buffer
	if h.o.Gatherer != nil {
		families, err := h.o.Gatherer.Gather()
		if err != nil {
			return nil, internal(fmt.Errorf("error gathering self metrics: %w", err))
		}
		for _, f := range families {
			if named != nil && !named.MatchString(f.GetName()) {
				continue
			}
			text, err := protojson.Marshal(f)
			if err == nil {
				err = json.Compact(&texts, text) // protojson adds random spaces
			}
			if err != nil {
				return nil, internal(fmt.Errorf("error marshaling metric family %q: %w", f.GetName(), err))
			}
			if err := r.Quota.TakeBytes(2 * int64(len(text))); err != nil {
				return nil, err
			}
			texts.WriteByte(',')
		}
	}
	return success(func(b *body) {
		b.Raw("[")
		b.Raw(strings.TrimSuffix(texts.String(), ","))
		b.Raw("]")
	}), nil
}

// registerFeatures adds the features of this API to those of the engine, by the names of Prometheus.
func registerFeatures(c features.Collector) {
	for _, name := range []string{
		"exclude_alerts", "label_values_match", "openapi_3.1", "otlp_write_receiver", "query_stats", "query_warnings",
		"remote_write_receiver", "time_range_labels", "time_range_series",
	} {
		c.Enable(features.API, name)
	}
	for _, name := range []string{"admin", "lifecycle", "openapi_3.2", "search"} {
		c.Disable(features.API, name)
	}
	c.Disable(features.OTLPReceiver, "delta_conversion")
	c.Disable(features.OTLPReceiver, "native_delta_ingestion")
	c.Enable(features.TSDB, "exemplar_storage")
	c.Enable(features.TSDB, "native_histograms")
	c.Enable(features.TSDB, "st_storage")
}

// features returns what is switched on, by category.
func (h *Handler) features(*api.Request) (*api.Response, error) {
	return jsonResponse(h.o.Features.Get())
}
