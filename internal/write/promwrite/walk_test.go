package promwrite

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

// row is a sample as the tests compare it.
type row struct {
	Labels string
	Key    model.Key
	Time   int64
	Value  uint64
}

// walked returns what the walker makes of a body, and the number of samples that it left out.
func walked(raw []byte) (rows []row, left int, err error) {
	w, b := new(walker), new(model.Batch)
	w.start(raw, seed, b, func(int64) error { return nil })
	if err := w.walk(); err != nil {
		return nil, 0, err
	}
	var lb model.LabelsBuilder
	for i, k := range b.Keys {
		lb.Reset()
		w.BuildLabels(i, &lb)
		l, err := lb.Append(nil)
		name := model.Labels(l).String()
		if err != nil {
			name = "duplicate"
		}
		for j := b.Samples.Begin(i); j < b.Samples.End(i); j++ {
			rows = append(rows, row{name, k, b.Samples.Times[j], b.Samples.Values[j]})
		}
	}
	for i := range w.left {
		left += w.left[i].Samples
	}
	return rows, left, nil
}

// expected is what a walk must give for the request that upstream's decoder sees.
func expected(req *prompb.WriteRequest) (rows []row, left int) {
	for i := range req.Timeseries {
		ts := &req.Timeseries[i]
		left += len(ts.Histograms)
		var lb model.LabelsBuilder
		named := false
		for _, l := range ts.Labels {
			lb.Add([]byte(l.Name), []byte(l.Value))
			named = named || l.Name == model.NameLabel && l.Value != ""
		}
		bytes, err := lb.Append(nil)
		name := model.Labels(bytes).String()
		if err != nil {
			name = "duplicate"
		}
		for _, s := range ts.Samples {
			ns := s.Timestamp * 1_000_000
			if !named || ns/1_000_000 != s.Timestamp {
				left++
				continue
			}
			rows = append(rows, row{name, model.Labels(bytes).Key(seed, model.Metrics), ns, math.Float64bits(s.Value)})
		}
	}
	return rows, left
}

// sorted reports whether the labels of every series are in order, so that the key needs no correction later.
func sorted(req *prompb.WriteRequest) bool {
	for i := range req.Timeseries {
		last := ""
		for j, l := range req.Timeseries[i].Labels {
			if l.Value == "" || j > 0 && l.Name <= last {
				return false
			}
			last = l.Name
		}
	}
	return true
}

func withoutKeys(rows []row) []row {
	for i := range rows {
		rows[i].Key = model.Key{}
	}
	return rows
}

func compare(t *testing.T, raw []byte, req *prompb.WriteRequest, keys bool) {
	t.Helper()
	got, gotLeft, err := walked(raw)
	if err != nil {
		t.Fatalf("walk: %v", err)
	}
	want, wantLeft := expected(req)
	if !keys {
		got, want = withoutKeys(got), withoutKeys(want)
	}
	if diff := cmp.Diff(want, got); diff != "" || gotLeft != wantLeft {
		t.Fatalf("%d left out, want %d\n%s", gotLeft, wantLeft, diff)
	}
}

func TestUpstreamEncoderAgrees(t *testing.T) {
	long := strings.Repeat("x", 300)
	req := fleet(50)
	req.Timeseries = append(req.Timeseries,
		series([]prompb.Sample{{Timestamp: 1, Value: 0}, {Timestamp: 0, Value: 1}, {Timestamp: -5, Value: math.Inf(-1)}}, "__name__", "up", "job", "a", "instance", "b"),
		series([]prompb.Sample{{Timestamp: nowMs, Value: math.Float64frombits(model.StaleNaN)}}, "__name__", "stale"),
		series([]prompb.Sample{{Timestamp: math.MaxInt64, Value: 1}, {Timestamp: 7, Value: 2}, {Timestamp: math.MinInt64}}, "__name__", "range"),
		series(sample(1, 1), "__name__", long, "a", long),
		series(sample(1, 1), "Upper", "x", "__name__", "m"),
		series(sample(1, 1), "job", "nameless"),
		series(nil, "__name__", "empty"),
		prompb.TimeSeries{},
	)
	req.Timeseries[2].Exemplars = []prompb.Exemplar{{Labels: []prompb.Label{{Name: "trace", Value: "1"}}, Value: 1, Timestamp: 1}}
	req.Timeseries[3].Histograms = []prompb.Histogram{{Schema: 3, Timestamp: 4}}
	req.Metadata = []prompb.MetricMetadata{{MetricFamilyName: "up", Help: "whether it is up"}}
	raw, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	// Labels must be in order for the keys to be right at once; "job" before "instance" is not.
	at := len(req.Timeseries) - 8
	compare(t, raw, req, false)
	req.Timeseries[at].Labels[1], req.Timeseries[at].Labels[2] = req.Timeseries[at].Labels[2], req.Timeseries[at].Labels[1]
	if raw, err = req.Marshal(); err != nil {
		t.Fatal(err)
	}
	compare(t, raw, &prompb.WriteRequest{Timeseries: req.Timeseries}, false)
	compare(t, raw, req, sorted(req))
	if !sorted(fleet(1)) {
		t.Fatal("the fleet's labels are not in order")
	}
}

// TestOddSpellings holds the walker to the same result for every way in which protobuf can write one request.
func TestOddSpellings(t *testing.T) {
	label := func(name, value string) string {
		return "\x0a" + lenPrefix("\x0a"+lenPrefix(name)+"\x12"+lenPrefix(value))
	}
	const value, stamp = "\x09\x00\x00\x00\x00\x00\x00\xf0\x3f", "\x10\x07"
	const plain = "\x12\x0b" + value + stamp
	for name, ts := range map[string]string{
		"usual":                    label("__name__", "m") + label("a", "b") + plain,
		"sample first":             plain + label("__name__", "m") + label("a", "b"),
		"split labels":             label("__name__", "m") + plain + label("a", "b"),
		"unknown between labels":   label("__name__", "m") + "\x28\x05" + label("a", "b") + plain,
		"unknown of 32 and 64 bit": label("__name__", "m") + label("a", "b") + "\x2d1234\x3112345678" + plain,
		"empty value dropped":      label("__name__", "m") + label("a", "b") + label("c", "") + plain,
		"label without value":      label("__name__", "m") + label("a", "b") + "\x0a\x03\x0a\x01c" + plain,
		"value before name":        label("__name__", "m") + "\x0a\x06\x12\x01b\x0a\x01a" + plain,
		"name twice":               label("__name__", "m") + "\x0a\x09\x0a\x01x\x0a\x01a\x12\x01b" + plain,
		"unknown field in label":   label("__name__", "m") + "\x0a\x08\x0a\x01a\x12\x01b\x18\x01" + plain,
		"long varint of a length":  label("__name__", "m") + "\x0a\x87\x00\x0a\x81\x00a\x12\x01b" + plain,
		"long tag":                 label("__name__", "m") + "\x8a\x00\x06\x0a\x01a\x12\x01b" + plain,
		"unordered":                label("a", "b") + label("__name__", "m") + "\x12\x0b" + value + stamp,
		"time before value":        label("__name__", "m") + label("a", "b") + "\x12\x0b" + stamp + value,
		"value twice":              label("__name__", "m") + label("a", "b") + "\x12\x14" + "\x0912345678" + value + stamp,
		"unknown in sample":        label("__name__", "m") + label("a", "b") + "\x12\x0d" + value + stamp + "\x18\x01",
		"long tag of a sample":     label("__name__", "m") + label("a", "b") + "\x92\x80\x00\x0b" + value + stamp,
	} {
		t.Run(name, func(t *testing.T) {
			raw := []byte("\x0a" + lenPrefix(ts))
			var req prompb.WriteRequest
			if err := req.Unmarshal(raw); err != nil {
				t.Fatalf("the test's own bytes: %v", err)
			}
			compare(t, raw, &req, name != "unordered")
			rows, _, err := walked(raw)
			if err != nil || len(rows) != 1 || rows[0].Labels != `{__name__="m", a="b"}` || rows[0].Time != 7_000_000 || rows[0].Value != math.Float64bits(1) {
				t.Fatalf("got %v, %v", rows, err)
			}
			// Through the write path the key is right, whatever the spelling.
			h, s := newHandler(t, testLimits())
			limits := testLimits()
			limits.MaxAge = 0
			if w := send(h, snappy.Encode(nil, raw)); w.Code != 204 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if s.rows[`anonymous{__name__="m", a="b"}`] == nil {
				t.Fatalf("stored %v", s.rows)
			}
		})
	}
}

func lenPrefix(s string) string { return string(rune(len(s))) + s }

func TestMalformed(t *testing.T) {
	for what, raw := range map[string]string{
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
		"sample value as varint":   "\x0a\x04\x12\x02\x08\x01",
		"sample value cut off":     "\x0a\x07\x12\x05\x09\x00\x00\x00\x00",
		"sample time as double":    "\x0a\x0b\x12\x09\x1112345678",
		"sample time cut off":      "\x0a\x04\x12\x02\x10\x80",
		"histogram as number":      "\x0a\x02\x20\x01",
		"metadata cut off":         "\x1a\x05\x00",
		"64 bits cut off":          "\x49\x00",
	} {
		_, _, err := walked([]byte(raw))
		var m *malformed
		if !errors.As(err, &m) || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: got %v", what, err)
			continue
		}
		if m.at < 0 || m.at > len(raw) {
			t.Errorf("%s: offset %d of %d bytes", what, m.at, len(raw))
		}
	}
}

func TestWalkerRandomRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := &prompb.WriteRequest{}
		for range rapid.IntRange(0, 5).Draw(t, "series") {
			ts := prompb.TimeSeries{}
			for range rapid.IntRange(0, 4).Draw(t, "labels") {
				ts.Labels = append(ts.Labels, prompb.Label{
					Name:  rapid.SampledFrom([]string{"__name__", "job", "instance", "", "a", strings.Repeat("n", 130)}).Draw(t, "name"),
					Value: rapid.SampledFrom([]string{"", "x", "a.b.c", strings.Repeat("v", 130)}).Draw(t, "value"),
				})
			}
			for range rapid.IntRange(0, 3).Draw(t, "samples") {
				ts.Samples = append(ts.Samples, prompb.Sample{Value: rapid.Float64().Draw(t, "v"), Timestamp: rapid.Int64().Draw(t, "ms") >> rapid.IntRange(0, 63).Draw(t, "shift")})
			}
			req.Timeseries = append(req.Timeseries, ts)
		}
		raw, err := req.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, gotLeft, err := walked(raw)
		if err != nil {
			t.Fatal(err)
		}
		// The encoder drops values that equal zero, and with them the sign of -0.
		var sent prompb.WriteRequest
		if err := sent.Unmarshal(raw); err != nil {
			t.Fatal(err)
		}
		want, wantLeft := expected(&sent)
		if !sorted(req) {
			got, want = withoutKeys(got), withoutKeys(want)
		}
		if diff := cmp.Diff(want, got); diff != "" || gotLeft != wantLeft {
			t.Fatalf("%d left out, want %d\n%s", gotLeft, wantLeft, diff)
		}
	})
}

// FuzzWalk takes upstream's decoder as the judge: what it reads, the walker reads alike; what it refuses, the walker
// refuses, unless the fault lies in a part that the walker does not look into.
func FuzzWalk(f *testing.F) {
	for _, n := range []int{0, 1, 3} {
		raw, err := fleet(n).Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	full := &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:     []prompb.Label{{Name: "__name__", Value: "m"}, {Name: "empty"}, {Name: "a", Value: "b"}},
		Samples:    []prompb.Sample{{Value: 1, Timestamp: 2}, {Timestamp: math.MaxInt64}},
		Exemplars:  []prompb.Exemplar{{Value: 1}},
		Histograms: []prompb.Histogram{{Schema: 1}},
	}}, Metadata: []prompb.MetricMetadata{{Help: "x"}}}
	raw, err := full.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte("\x22\x00\x22\x01a\x2a\x02\x0a\x00"))
	f.Add([]byte("\x0a\x1b\x12\x0b\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\x07\x0a\x0c\x0a\x08__name__\x12\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, gotLeft, err := walked(raw)
		var req prompb.WriteRequest
		judge := req.Unmarshal(raw)
		switch {
		case err != nil && judge == nil:
			// A body of version 2 is refused, which upstream's decoder of version 1 skips.
			if !strings.Contains(err.Error(), "wire type") && !strings.Contains(err.Error(), "remote write 2.0") {
				t.Fatalf("upstream reads what the walker refuses: %v", err)
			}
			return
		case err == nil && judge != nil:
			// Exemplars, histograms and metadata are skipped unread; their tags may have been spelled with more bytes.
			if !bytes.ContainsFunc(raw, func(r rune) bool { return r == 0x1a || r == 0x22 || r == utf8.RuneError }) {
				t.Fatalf("the walker reads what upstream refuses: %v", judge)
			}
			return
		case err != nil:
			return
		}
		want, wantLeft := expected(&req)
		if !sorted(&req) {
			got, want = withoutKeys(got), withoutKeys(want)
		}
		if diff := cmp.Diff(want, got); diff != "" || gotLeft != wantLeft {
			t.Fatalf("%d left out, want %d\n%s", gotLeft, wantLeft, diff)
		}
	})
}
