package loki

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	common "github.com/prometheus/common/model"

	"github.com/shaledb/shale/internal/api"
)

// limit is a limit of Loki by its name there, with its value in JSON.
type limit struct{ name, value string }

// limits returns the limits that Loki publishes, as far as there is such a limit or feature here.
func (h *Handler) limits() []limit {
	quoted := func(d time.Duration) string { return strconv.Quote(common.Duration(d).String()) }
	l := &h.o.Limits
	return []limit{
		{"discover_log_levels", "true"},
		{"max_entries_limit_per_query", strconv.Itoa(l.MaxLines)},
		{"max_line_size_truncate", "false"},
		{"max_query_bytes_read", `"0B"`},
		{"max_query_length", `"0s"`},
		{"max_query_lookback", `"0s"`},
		{"max_query_range", `"0s"`},
		{"max_query_series", strconv.Itoa(l.MaxResultSeries)},
		{"metric_aggregation_enabled", "false"},
		{"pattern_persistence_enabled", "false"},
		{"query_timeout", quoted(l.Timeout)},
		{"retention_period", quoted(h.o.Retention)},
		{"volume_enabled", "true"},
		{"volume_max_series", strconv.Itoa(math.MaxInt32)},
	}
}

// drilldownLimits serves the limits that Logs Drilldown adapts to.
func (h *Handler) drilldownLimits(*api.Request) (*api.Response, error) {
	res := response(func(b *api.Body) {
		b.Raw(`{"limits":{`)
		for i, l := range h.limits() {
			if i > 0 {
				b.Raw(",")
			}
			b.Str(l.name)
			b.Raw(":")
			b.Raw(l.value)
		}
		b.Raw(`},"pattern_ingester_enabled":`)
		patterns := slices.ContainsFunc(h.endpoints(), func(e api.Endpoint) bool { return e.Name == "patterns" })
		b.Buf = strconv.AppendBool(b.Buf, patterns)
		b.Raw(`,"version":`)
		b.Str(h.o.Version.Version)
		b.Raw("}\n")
	})
	res.ContentType = "application/json"
	return res, nil
}

// tenantLimits serves the same limits as YAML.
func (h *Handler) tenantLimits(*api.Request) (*api.Response, error) {
	res := response(func(b *api.Body) {
		for _, l := range h.limits() {
			b.Raw(l.name)
			b.Raw(": ")
			b.Raw(strings.Trim(l.value, `"`))
			b.Raw("\n")
		}
	})
	res.ContentType = "text/plain; charset=utf-8"
	return res, nil
}
