package promwrite

import (
	"fmt"
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/shaledb/shale/internal/model"
)

func TestMetadataOfVersion1(t *testing.T) {
	h, s := newHandler(t, testLimits())
	req := &prompb.WriteRequest{}
	for typ := range int32(9) {
		req.Metadata = append(req.Metadata, prompb.MetricMetadata{
			Type: prompb.MetricMetadata_MetricType(typ), MetricFamilyName: fmt.Sprint("m", typ), Help: fmt.Sprint("help ", typ), Unit: "s",
		})
	}
	req.Metadata = append(req.Metadata, prompb.MetricMetadata{Help: "nameless"})
	for range 3 { // Prometheus repeats it every minute
		if w := send(h, encode(t, req), "X-Scope-OrgID", "t"); w.Code != 204 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	want := map[string]model.Metadata{}
	for typ, word := range []string{"unknown", "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset", "unknown"} {
		want[fmt.Sprint("t m", typ)] = model.Metadata{Type: word, Help: fmt.Sprint("help ", typ), Unit: "s"}
	}
	if diff := cmp.Diff(want, s.Metadata); diff != "" || s.Puts != len(want) {
		t.Fatalf("%d puts\n%s", s.Puts, diff)
	}
	req.Metadata = req.Metadata[:1]
	req.Metadata[0].Unit = "bytes"
	send(h, encode(t, req), "X-Scope-OrgID", "t")
	if s.Metadata["t m0"].Unit != "bytes" || s.Puts != len(want)+1 {
		t.Fatalf("%d puts, %v", s.Puts, s.Metadata["t m0"])
	}
}

// TestMetadataOfVersion2: metadata comes with each series, whose name is that of the family plus a
// suffix.
func TestMetadataOfVersion2(t *testing.T) {
	const counter, gauge, histogram, gaugeHistogram, summary = 1, 2, 3, 4, 5
	h, s := newHandler(t, testLimits())
	r := newRequestV2()
	about := func(name string, typ writev2.Metadata_MetricType, help string) {
		r.series(func(ts *writev2.TimeSeries) {
			ts.Samples = []writev2.Sample{{Value: 1, Timestamp: nowMs}}
			ts.Metadata = writev2.Metadata{Type: typ, HelpRef: r.Symbolize(help)}
		}, "__name__", name)
	}
	for _, name := range []string{"h_bucket", "h_count", "h_sum", "h"} {
		about(name, histogram, "A histogram.")
	}
	for _, name := range []string{"g_bucket", "g_gcount", "g_gsum"} {
		about(name, gaugeHistogram, "A gauge histogram.")
	}
	for _, name := range []string{"s", "s_count", "s_sum"} {
		about(name, summary, "A summary.")
	}
	about("c_total", counter, "A counter.")
	about("fill_count", gauge, "A gauge whose name ends so.")
	about("_count", histogram, "Nothing before it.")
	about("silent", 0, "")
	about("untyped", 0, "Help alone.")
	for range 3 {
		if w := sendV2(h, encodeV2(t, r.done())); w.Code != 204 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	want := map[string]model.Metadata{
		"anonymous h": {Type: "histogram", Help: "A histogram."}, "anonymous g": {Type: "gaugehistogram", Help: "A gauge histogram."},
		"anonymous s": {Type: "summary", Help: "A summary."}, "anonymous c_total": {Type: "counter", Help: "A counter."},
		"anonymous fill_count": {Type: "gauge", Help: "A gauge whose name ends so."}, "anonymous _count": {Type: "histogram", Help: "Nothing before it."},
		"anonymous untyped": {Type: "unknown", Help: "Help alone."},
	}
	if diff := cmp.Diff(want, s.Metadata); diff != "" || s.Puts != len(want) {
		t.Fatalf("%d puts\n%s", s.Puts, diff)
	}
}

// TestMetadataOfRefusedSeries: metadata of series that are not stored is dropped.
func TestMetadataOfRefusedSeries(t *testing.T) {
	h, s := newHandler(t, testLimits())
	raw := symbolsOf("", "job", "x") + msg(5, msg(1, packed(1, 2)), msg(2, dbl(1, 1), num(2, nowMs)), msg(5, num(1, 1), num(3, 2)))
	if w := sendV2(h, snappy.Encode(nil, []byte(raw))); w.Code != 400 || s.Puts != 0 {
		t.Fatalf("%d %s, %d puts", w.Code, w.Body, s.Puts)
	}
}
