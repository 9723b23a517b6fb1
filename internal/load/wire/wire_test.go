package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/values"
)

func testFleetWire() fleet.Fleet {
	return fleet.Fleet{Seed: 7, Targets: 12, Metrics: 3, Series: 10, Labels: 12, Name: "load_metric", Value: values.Gauge}
}

// TestMetadataV1 decodes the requests that say what metrics are.
func TestMetadataV1(t *testing.T) {
	f := testFleetWire()
	f.Value = values.Counter
	var req prompb.WriteRequest
	if err := req.Unmarshal(AppendMetadata(nil, &f, 1, 2)); err != nil {
		t.Fatal(err)
	}
	want := []prompb.MetricMetadata{
		{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "load_metric_mmmmm_1", Help: "Metric 1 of a load, by the model counter."},
		{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "load_metric_mmmmm_2", Help: "Metric 2 of a load, by the model counter."},
	}
	if diff := cmp.Diff(want, req.Metadata); diff != "" {
		t.Error(diff)
	}
}

// TestSeriesSize keeps a series with ten constant labels near the 580 bytes of the load that it imitates, and
// far below in version 2.
func TestSeriesSize(t *testing.T) {
	for p, want := range map[Protocol][2]int{V1: {560, 600}, V2: {50, 100}} {
		l := Encoding{
			Fleet:    &fleet.Fleet{Targets: 1000, Metrics: 10, Series: 100, Labels: 10, Name: "load_metric"},
			Timeline: pace.Timeline{Start: 1_700_000_000e9, Step: 1e9}, Batch: 2000, Protocol: p,
		}
		_, size, c := NewRequests(l).Fill(3, 0)
		if n := size / c.Points(); n < want[0] || n > want[1] {
			t.Errorf("%v: %d bytes a series", p, n)
		}
	}
}
