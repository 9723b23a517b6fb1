package otlp

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/protobuf/encoding/protowire"
)

func message(number protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
}

// allocated returns how many bytes f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// The library never allocates more for a body than what is reserved for it.
func TestTreesAreReserved(t *testing.T) {
	const n = 20_000
	empty := func(number protowire.Number) []byte { return bytes.Repeat(message(number, nil), n) }
	metric := func(b []byte) []byte { return message(1, message(2, message(2, b))) }
	s := metricsShape()
	full, err := pmetricotlp.NewExportRequestFromMetrics(sampleMetrics()).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{
		"resources":           empty(1),
		"scopes":              message(1, empty(2)),
		"metrics":             message(1, message(2, empty(2))),
		"gauge points":        metric(message(5, empty(1))),
		"sum points":          metric(message(7, empty(1))),
		"histogram points":    metric(message(9, empty(1))),
		"exponential points":  metric(message(10, empty(1))),
		"summary points":      metric(message(11, empty(1))),
		"quantiles":           metric(message(11, message(1, empty(6)))),
		"exemplars":           metric(message(5, message(1, empty(5)))),
		"attributes":          metric(message(5, message(1, empty(7)))),
		"resource attributes": message(1, message(1, empty(1))),
		"values":              metric(message(5, message(1, bytes.Repeat(message(7, message(2, nil)), n)))),
		"lists":               metric(message(5, message(1, message(7, message(2, message(5, empty(1))))))),
		"maps":                metric(message(5, message(1, message(7, message(2, message(6, empty(1))))))),
		"buckets":             metric(message(10, message(1, message(8, message(2, make([]byte, n)))))),
		"buckets, one by one": metric(message(10, message(1, message(8, bytes.Repeat([]byte{0x10, 0}, n))))),
		"fixed buckets":       metric(message(9, message(1, message(6, make([]byte, 8*n))))),
		"bounds, one by one":  metric(message(9, message(1, bytes.Repeat(append([]byte{0x39}, make([]byte, 8)...), n)))),
		"a name":              metric(message(1, bytes.Repeat([]byte("x"), n))),
		"entities":            message(1, message(1, empty(3))),
		"all":                 bytes.Repeat(full, 100),
	} {
		reserved, err := s.treeSize(body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		took := allocated(func() {
			if err := pmetricotlp.NewExportRequest().UnmarshalProto(body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		t.Logf("%s: %d bytes, %d reserved, %d taken", name, len(body), reserved, took)
		if took > reserved {
			t.Errorf("%s: %d bytes are reserved for %d, and %d taken", name, reserved, len(body), took)
		}
	}
	logs, err := plogotlp.NewExportRequestFromLogs(sampleLogs()).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	list := func(prefix, item, suffix string) []byte {
		return []byte(prefix + strings.Repeat(item+",", n) + item + suffix)
	}
	for name, body := range map[string][]byte{
		"resources":  list(`{"resourceLogs":[`, `{}`, `]}`),
		"records":    list(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[`, `{}`, `]}]}]}`),
		"attributes": list(`{"resourceLogs":[{"resource":{"attributes":[`, `{"value":{"arrayValue":{}}}`, `]}}]}`),
		"a string":   []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"` + strings.Repeat(`\n`, n) + `"}}]}]}]}`),
		"all":        logs,
	} {
		reserved, err := jsonTreeSize(body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		took := allocated(func() {
			if err := plogotlp.NewExportRequest().UnmarshalJSON(body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		t.Logf("JSON %s: %d bytes, %d reserved, %d taken", name, len(body), reserved, took)
		if took > reserved+8192 {
			t.Errorf("JSON %s: %d bytes are reserved for %d, and %d taken", name, reserved, len(body), took)
		}
	}
}

func TestNestingIsBounded(t *testing.T) {
	value := message(1, []byte("x"))
	for range 10_000 {
		value = message(5, message(1, value))
	}
	body := message(1, message(2, message(2, message(5, message(1, message(7, message(2, value)))))))
	if _, err := metricsShape().treeSize(body); err == nil || !strings.Contains(err.Error(), "nested too deeply") {
		t.Error(err)
	}
	if _, err := jsonTreeSize([]byte(strings.Repeat(`{"a":[`, 300))); err == nil {
		t.Error("JSON may be nested as deep as it likes")
	}
	if _, err := jsonTreeSize([]byte(`{"a":"` + strings.Repeat("[", 1000) + `\""}`)); err != nil {
		t.Error(err)
	}
}
