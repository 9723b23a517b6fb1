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

// limits returns the limits that Loki publishes, as far as there is such a limit or feature here: of several
// tenants the least of each.
func (h *Handler) limits(r *api.Request) ([]limit, error) {
	tenants, err := api.ManyTenants(r.Header)
	if err != nil {
		return nil, err
	}
	quoted := func(d time.Duration) string { return strconv.Quote(common.Duration(d).String()) }
	l := &h.o.Limits
	timeout, longest, retention := l.Timeout, l.MaxRange, time.Duration(0)
	lower := func(a, b time.Duration) time.Duration {
		if a == 0 || b != 0 && b < a {
			return b
		}
		return a
	}
	for i, tenant := range tenants {
		if h.o.LimitsOf != nil {
			own := h.o.LimitsOf(tenant)
			if i == 0 {
				timeout, longest = own.Timeout, own.MaxRange
			}
			timeout, longest = lower(timeout, own.Timeout), lower(longest, own.MaxRange)
		}
		if h.o.Retention != nil {
			retention = lower(retention, h.o.Retention(tenant))
		}
	}
	return []limit{
		{"discover_log_levels", "true"},
		{"max_entries_limit_per_query", strconv.Itoa(l.MaxLines)},
		{"max_line_size_truncate", "false"},
		{"max_query_bytes_read", `"0B"`},
		{"max_query_length", quoted(longest)},
		{"max_query_lookback", `"0s"`},
		{"max_query_range", `"0s"`},
		{"max_query_series", strconv.Itoa(l.MaxResultSeries)},
		{"metric_aggregation_enabled", "false"},
		{"pattern_persistence_enabled", "false"},
		{"query_timeout", quoted(timeout)},
		{"retention_period", quoted(retention)},
		{"volume_enabled", "true"},
		{"volume_max_series", strconv.Itoa(math.MaxInt32)},
	}, nil
}

// drilldownLimits serves the limits that Logs Drilldown adapts to.
func (h *Handler) drilldownLimits(r *api.Request) (*api.Response, error) {
	limits, err := h.limits(r)
	if err != nil {
		return nil, err
	}
	res := response(func(b *api.Body) {
		b.Raw(`{"limits":{`)
		for i, l := range limits {
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
func (h *Handler) tenantLimits(r *api.Request) (*api.Response, error) {
	limits, err := h.limits(r)
	if err != nil {
		return nil, err
	}
	res := response(func(b *api.Body) {
		for _, l := range limits {
			b.Raw(l.name)
			b.Raw(": ")
			b.Raw(strings.Trim(l.value, `"`))
			b.Raw("\n")
		}
	})
	res.ContentType = "text/plain; charset=utf-8"
	return res, nil
}
