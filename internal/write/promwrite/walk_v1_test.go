package promwrite

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/model"
)

func TestUpstreamEncoderAgreesV1(t *testing.T) {
	long := strings.Repeat("x", 300)
	req := fleet(50)
	req.Timeseries = append(req.Timeseries,
		series([]prompb.Sample{{Timestamp: 1, Value: 0}, {Timestamp: 0, Value: 1}, {Timestamp: -5, Value: math.Inf(-1)}}, "__name__", "up", "instance", "b", "job", "a"),
		series([]prompb.Sample{{Timestamp: nowMs, Value: math.Float64frombits(model.StaleNaN)}}, "__name__", "stale"),
		series([]prompb.Sample{{Timestamp: math.MaxInt64, Value: 1}, {Timestamp: 7, Value: 2}, {Timestamp: math.MinInt64}}, "__name__", "range"),
		series(sample(1, 1), "__name__", long, "a", long),
		series(sample(1, 1), "Upper", "x", "__name__", "m"),
		series(sample(1, 1), "job", "nameless"),
		series(nil, "__name__", "empty"),
		prompb.TimeSeries{},
	)
	req.Timeseries[2].Exemplars = []prompb.Exemplar{{Labels: []prompb.Label{{Name: "trace", Value: "1"}}, Value: 1, Timestamp: 1}}
	req.Timeseries[3].Histograms = []prompb.Histogram{prompb.FromIntHistogram(4, latencies(1)), prompb.FromFloatHistogram(5, latencies(2).ToFloat(nil))}
	req.Metadata = []prompb.MetricMetadata{{MetricFamilyName: "up", Help: "whether it is up", Unit: "bool", Type: prompb.MetricMetadata_GAUGE}}
	want := expectedV1(req)
	if !want.ordered || len(want.Rows) != 60 || want.Left.Samples != 3 {
		t.Fatalf("the test's own request: %d rows, %+v left, ordered %t", len(want.Rows), want.Left, want.ordered)
	}
	compare(t, v1, marshalV1(t, req), want)
	// Unordered labels are right but for the key, which the write path corrects.
	req.Timeseries = append(req.Timeseries, series(sample(1, 1), "__name__", "up", "job", "a", "instance", "b"))
	compare(t, v1, marshalV1(t, req), expectedV1(req))
}

// TestOddSpellingsV1: all protobuf encodings of a request give the same result.
func TestOddSpellingsV1(t *testing.T) {
	value, stamp := dbl(1, 1), num(2, 7)
	plain, name, a := msg(2, value, stamp), label("__name__", "m"), label("a", "b")
	for what, ts := range map[string]string{
		"usual":                    name + a + plain,
		"sample first":             plain + name + a,
		"split labels":             name + plain + a,
		"unknown between labels":   name + "\x28\x05" + a + plain,
		"unknown of 32 and 64 bit": name + a + "\x2d1234\x3112345678" + plain,
		"empty value dropped":      name + a + label("c", "") + plain,
		"label without value":      name + a + "\x0a\x03\x0a\x01c" + plain,
		"value before name":        name + "\x0a\x06\x12\x01b\x0a\x01a" + plain,
		"name twice":               name + "\x0a\x09\x0a\x01x\x0a\x01a\x12\x01b" + plain,
		"unknown field in label":   name + "\x0a\x08\x0a\x01a\x12\x01b\x18\x01" + plain,
		"long varint of a length":  name + "\x0a\x87\x00\x0a\x81\x00a\x12\x01b" + plain,
		"long tag":                 name + "\x8a\x00\x06\x0a\x01a\x12\x01b" + plain,
		"unordered":                a + name + plain,
		"time before value":        name + a + msg(2, stamp, value),
		"value twice":              name + a + msg(2, dbl(1, 5), value, stamp),
		"unknown in sample":        name + a + msg(2, value, stamp, num(3, 1)),
		"long tag of a sample":     name + a + "\x92\x80\x00\x0b" + value + stamp,
	} {
		t.Run(what, func(t *testing.T) {
			raw := []byte(msg(1, ts))
			var req prompb.WriteRequest
			if err := req.Unmarshal(raw); err != nil {
				t.Fatalf("the test's own bytes: %v", err)
			}
			compare(t, v1, raw, expectedV1(&req))
			got, err := walked(v1, raw)
			if err != nil || len(got.Rows) != 1 || got.Rows[0].Labels != `{__name__="m", a="b"}` || got.Rows[0].Time != 7_000_000 {
				t.Fatalf("got %v, %v", got, err)
			}
			// Through the write path the key is right, whatever the spelling.
			h, s := newHandler(t, testLimits())
			if w := send(h, snappy.Encode(nil, raw)); w.Code != 204 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if s.Rows[`anonymous{__name__="m", a="b"}`] == nil {
				t.Fatalf("stored %v", s.Rows)
			}
		})
	}
}

func TestMalformedV1(t *testing.T) { malformedBodies(t, v1, malformedV1()) }

// malformedV1 are bodies that are not a WriteRequest.
func malformedV1() map[string]string {
	bodies := map[string]string{
		"cut off tag":              "\x8a",
		"oversized tag":            "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"field number 0":           "\x02\x00",
		"cut off length":           "\x0a\x80",
		"series longer than body":  "\x0a\x05\x0a",
		"huge length":              "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"series as a number":       "\x08\x01",
		"a group":                  "\x0b\x0c",
		"a lone end of group":      "\x0c",
		"group inside a series":    "\x0a\x02\x2b\x2c",
		"wire type 7":              "\x0f",
		"label longer than series": "\x0a\x04\x0a\x09\x0a\x01",
		"label name as number":     "\x0a\x04\x0a\x02\x08\x01",
		"label name cut off":       "\x0a\x05\x0a\x03\x0a\x05a",
		"sample value as varint":   msg(1, msg(2, num(1, 1))),
		"sample value cut off":     msg(1, msg(2, "\x09\x00\x00\x00\x00")),
		"sample time as double":    msg(1, msg(2, dbl(2, 1))),
		"sample time cut off":      msg(1, msg(2, "\x10\x80")),
		"histogram as number":      msg(1, num(4, 1)),
		"exemplar as number":       msg(1, num(3, 1)),
		"exemplar label as number": msg(1, msg(3, num(1, 1))),
		"exemplar label cut off":   msg(1, msg(3, msg(1, "\x0a\x05a"))),
		"exemplar value as number": msg(1, msg(3, num(2, 1))),
		"exemplar time as double":  msg(1, msg(3, dbl(3, 1))),
		"metadata as number":       num(3, 1),
		"metadata cut off":         "\x1a\x05\x00",
		"metadata type as string":  msg(3, msg(1, "x")),
		"metadata name as number":  msg(3, num(2, 1)),
		"metadata help as number":  msg(3, num(4, 1)),
		"metadata unit as number":  msg(3, num(5, 1)),
		"64 bits cut off":          "\x49\x00",
		"version 2: symbols":       symbolsOf("", "a"),
		"version 2: series":        msg(5, ""),
	}
	for what, body := range malformedHistograms() {
		bodies["histogram: "+what] = msg(1, msg(4, body))
	}
	return bodies
}

// malformedHistograms are Histogram messages of which a field has the wrong type or is cut off.
func malformedHistograms() map[string]string {
	return map[string]string{
		"count as double":            dbl(1, 1),
		"float count as number":      num(2, 1),
		"sum as number":              num(3, 1),
		"sum cut off":                "\x19\x00",
		"schema as double":           dbl(4, 1),
		"zero threshold as number":   num(5, 1),
		"zero count as double":       dbl(6, 1),
		"float zero count as number": num(7, 1),
		"span as number":             num(8, 1),
		"span cut off":               "\x5a\x05",
		"span's offset as double":    msg(11, dbl(1, 1)),
		"span's length cut off":      msg(11, "\x10\x80"),
		"deltas as double":           dbl(12, 1),
		"deltas as 32 bits":          "\x65\x01\x02\x03\x04",
		"deltas cut off":             msg(12, "\x80"),
		"a lone delta cut off":       "\x60\x80",
		"counts as number":           num(13, 1),
		"counts of 9 bytes":          msg(10, "123456789"),
		"a lone count cut off":       "\x69\x01",
		"bounds as number":           num(16, 1),
		"hint as double":             dbl(14, 1),
		"time as double":             dbl(15, 1),
		"a group":                    "\x93\x01\x94\x01",
	}
}

// malformedBodies expects an error that names an offset inside the body, from the walker as from
// upstream.
func malformedBodies(t *testing.T, v version, bodies map[string]string) {
	t.Helper()
	for what, raw := range bodies {
		_, err := walked(v, []byte(raw))
		var m *malformed
		if !errors.As(err, &m) || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: got %v", what, err)
			continue
		}
		if m.At < 0 || m.At > len(raw) {
			t.Errorf("%s: offset %d of %d bytes", what, m.At, len(raw))
		}
	}
}

// FuzzWalkV1 compares the walker with upstream's decoder: both accept the same bodies with the same
// result.
func FuzzWalkV1(f *testing.F) {
	for _, n := range []int{0, 1, 3} {
		f.Add(marshalV1(f, fleet(n)))
	}
	full := &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:     []prompb.Label{{Name: "__name__", Value: "m"}, {Name: "empty"}, {Name: "a", Value: "b"}},
		Samples:    []prompb.Sample{{Value: 1, Timestamp: 2}, {Timestamp: math.MaxInt64}},
		Exemplars:  []prompb.Exemplar{{Value: 1, Labels: []prompb.Label{{Name: "trace_id", Value: "x"}}}},
		Histograms: []prompb.Histogram{prompb.FromIntHistogram(1, latencies(0)), prompb.FromFloatHistogram(1, latencies(0).ToFloat(nil))},
	}}, Metadata: []prompb.MetricMetadata{{MetricFamilyName: "m", Help: "x", Unit: "y", Type: 3}}}
	f.Add(marshalV1(f, full))
	f.Add([]byte("\x22\x00\x22\x01a\x2a\x02\x0a\x00"))
	f.Add([]byte("\x0a\x1b\x12\x0b\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\x07\x0a\x0c\x0a\x08__name__\x12\x00"))
	for _, body := range malformedHistograms() {
		f.Add([]byte(msg(1, label("__name__", "m"), msg(4, body))))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := walked(v1, raw)
		var req prompb.WriteRequest
		judge := req.Unmarshal(raw)
		if disagree(t, err, judge) {
			compare(t, v1, raw, expectedV1(&req))
		}
	})
}

// disagree reports whether the walker and upstream both accept a body, and fails if only one does
// without a good reason. The walker refuses some bodies that upstream accepts: groups, which proto3
// does not have, messages that are clearly of the other version, and lists whose last entry extends
// beyond the list.
func disagree(t *testing.T, err, judge error) (both bool) {
	t.Helper()
	switch {
	case err != nil && judge == nil:
		for _, reason := range []string{"wire type", "remote write", "first symbol", "without symbols", "a created timestamp", "reference", "histogram's bucket"} {
			if strings.Contains(strings.TrimPrefix(err.Error(), "invalid: remote write body: "), reason) {
				return false
			}
		}
		t.Fatalf("upstream reads what the walker refuses: %v", err)
	case err == nil && judge != nil:
		t.Fatalf("the walker reads what upstream refuses: %v", judge)
	}
	return err == nil
}
