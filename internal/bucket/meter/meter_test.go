package meter_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/buckettest"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/bucket/meter"
)

func memory(t testing.TB) bucket.Bucket {
	t.Helper()
	b, err := fs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSuite(t *testing.T) {
	buckettest.Run(t, func(t testing.TB) bucket.Bucket { return meter.New(memory(t), nil) })
}

func TestCounts(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	b := meter.New(memory(t), reg)
	ctx := context.Background()
	if err := b.Put(ctx, "a", strings.NewReader("12345"), 5); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "none"} {
		_, _ = b.GetRange(ctx, name, 1, 3)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			key := f.GetName()
			for _, l := range m.Label {
				key += " " + l.GetValue()
			}
			got[key] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for key, want := range map[string]float64{
		"shale_bucket_requests_total put ok":              1,
		"shale_bucket_requests_total get_range ok":        1,
		"shale_bucket_requests_total get_range not_found": 1,
		"shale_bucket_bytes_total put":                    5,
		"shale_bucket_bytes_total get_range":              3,
		"shale_bucket_request_seconds get_range":          2,
	} {
		if got[key] != want {
			t.Errorf("%s is %v, not %v; all: %v", key, got[key], want, got)
		}
	}
}
