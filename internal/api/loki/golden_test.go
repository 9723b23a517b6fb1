package loki

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/shaledb/shale/internal/api/apitest"
)

// differs matches the statistics that differ from run to run, or with the way in which the engine works, cost
// the statement of it, and statistics all of them.
var (
	differs    = regexp.MustCompile(`(Time":|PerSecond":|"totalChunks[A-Za-z]*":|"postFilterChunks":)[0-9.e-]+`)
	cost       = regexp.MustCompile(`("shale":\{"series":\d+)[^}]*\}`)
	textCost   = regexp.MustCompile(`(text-[a-z]+=)\d+`)
	statistics = regexp.MustCompile(`"stats":\{"summary":.*"shale":\{[^}]*\}\}`)
)

// TestAPI runs the files of testdata/api, with the limits max-series, max-result-series, max-bytes and
// max-body. The statistics of a response are shown only with the argument `stats`.
func TestAPI(t *testing.T) {
	g := apitest.Golden{
		New: func(t *testing.T, limits *datadriven.TestData) *apitest.API {
			return newWorld(t, func(o *Options) {
				if limits != nil {
					limits.MaybeScanArgs(t, "max-series", &o.Limits.MaxSeries)
					limits.MaybeScanArgs(t, "max-result-series", &o.Limits.MaxResultSeries)
					limits.MaybeScanArgs(t, "max-bytes", &o.Limits.MaxBytes)
					limits.MaybeScanArgs(t, "max-body", &o.Limits.MaxBodyBytes)
				}
			}).API
		},
		JSON: "application/json; charset=UTF-8",
		Body: func(body string, d *datadriven.TestData) string {
			body = differs.ReplaceAllString(body, "${1}N")
			body = cost.ReplaceAllString(body, "$1,...}")
			if !d.HasArg("stats") {
				body = statistics.ReplaceAllString(body, `"stats":STATS`)
			}
			return strings.TrimSuffix(body, "\n")
		},
		Cost: func(cost string) string { return textCost.ReplaceAllString(cost, "${1}N") },
	}
	g.Run(t, "testdata/api")
}
