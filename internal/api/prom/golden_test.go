package prom_test

import (
	"regexp"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/api/prom"
)

// seconds are the parts of upstream's statistics that differ from run to run.
var seconds = regexp.MustCompile(`(Time":)[0-9.e-]+`)

// TestAPI runs the files of testdata/api, with the limits max-series, max-samples, max-bytes and max-body.
func TestAPI(t *testing.T) {
	g := apitest.Golden{
		New: func(t *testing.T, limits *datadriven.TestData) *apitest.API {
			return newWorld(t, func(o *prom.Options) {
				wired(o)
				if limits != nil {
					limits.MaybeScanArgs(t, "max-series", &o.Limits.MaxSeries)
					limits.MaybeScanArgs(t, "max-samples", &o.Limits.MaxSamples)
					limits.MaybeScanArgs(t, "max-bytes", &o.Limits.MaxBytes)
					limits.MaybeScanArgs(t, "max-body", &o.Limits.MaxBodyBytes)
				}
			}).API
		},
		JSON: "application/json",
		Body: func(body string, _ *datadriven.TestData) string { return seconds.ReplaceAllString(body, "${1}T") },
	}
	g.Run(t, "testdata/api")
}
