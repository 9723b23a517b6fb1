package promwrite

import (
	"math"
	"strings"
	"testing"

	"github.com/golang/snappy"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// everything is a request with all fields that a version 2 series can have.
func everything() *requestV2 {
	r := newRequestV2()
	r.series(func(ts *writev2.TimeSeries) {
		ts.Samples = []writev2.Sample{{Value: 1.5, Timestamp: nowMs, StartTimestamp: nowMs - 5}, {Timestamp: nowMs + 1, Value: math.Float64frombits(model.StaleNaN)}}
		ts.Exemplars = []writev2.Exemplar{
			{LabelsRefs: r.refs("trace_id", "abc"), Value: 3, Timestamp: nowMs},
			{LabelsRefs: r.refs("z", "1", "a", "2", "none", ""), Value: 4, Timestamp: nowMs},
		}
		ts.Metadata = writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: r.Symbolize("How many."), UnitRef: r.Symbolize("1")}
	}, "__name__", "requests_total", "job", "api")
	r.series(func(ts *writev2.TimeSeries) {
		ts.Histograms = []writev2.Histogram{
			writev2.FromIntHistogram(nowMs-7, nowMs, latencies(3)), writev2.FromFloatHistogram(0, nowMs+1, latencies(4).ToFloat(nil)),
		}
		ts.Metadata = writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_HISTOGRAM}
	}, "__name__", "latency_seconds", "job", "api")
	r.series(func(ts *writev2.TimeSeries) { // again, as Prometheus sends exemplars
		ts.Exemplars = []writev2.Exemplar{{LabelsRefs: r.refs("trace_id", "def"), Value: 5, Timestamp: nowMs}}
	}, "__name__", "requests_total", "job", "api")
	return r
}

func TestUpstreamEncoderAgreesV2(t *testing.T) {
	long := strings.Repeat("x", 300)
	r := everything()
	one := func(ts *writev2.TimeSeries) { ts.Samples = []writev2.Sample{{Value: 1, Timestamp: 1}} }
	r.series(one, "__name__", long, "a", long)
	r.series(one, "Upper", "x", "__name__", "m")
	r.series(one, "job", "nameless")
	r.series(func(*writev2.TimeSeries) {}, "__name__", "empty")
	r.series(one)
	want := expectedV2(r.done())
	if !want.ordered || len(want.Rows) != 9 || want.Left.Samples != 2 || want.Empty != 1 || len(want.Metadata) != 2 {
		t.Fatalf("the test's own request: %+v", want)
	}
	compare(t, v2, marshalV2(t, r.done()), want)
	compare(t, v2, marshalV2(t, translate(fleet(300))), expectedV2(translate(fleet(300))))
}

// TestOddSpellingsV2: all protobuf encodings of a request give the same result.
func TestOddSpellingsV2(t *testing.T) {
	table := symbolsOf("", "__name__", "m", "a", "b")
	refs, sample := msg(1, packed(1, 2, 3, 4)), msg(2, dbl(1, 1), num(2, 7), num(3, 5))
	for what, raw := range map[string]string{
		"usual":                       table + msg(5, refs, sample),
		"series before symbols":       msg(5, refs, sample) + table,
		"symbols on both sides":       symbolsOf("", "__name__") + msg(5, refs, sample) + symbolsOf("m", "a", "b"),
		"sample before references":    table + msg(5, sample, refs),
		"references in two pieces":    table + msg(5, msg(1, packed(1, 2)), msg(1, packed(3, 4)), sample),
		"references in three pieces":  table + msg(5, msg(1, packed(1)), msg(1, packed(2, 3)), sample, msg(1, packed(4))),
		"references not packed":       table + msg(5, num(1, 1), num(1, 2), num(1, 3), num(1, 4), sample),
		"packed and not":              table + msg(5, msg(1, packed(1, 2)), num(1, 3), num(1, 4), sample),
		"an empty piece":              table + msg(5, msg(1, ""), msg(1, packed(1, 2, 3, 4)), sample),
		"long references":             table + msg(5, msg(1, "\x81\x00\x82\x80\x00\x03\x84\x80\x80\x80\x80\x00"), sample),
		"a label without value":       table + msg(5, msg(1, packed(1, 2, 3, 4, 4, 0)), sample),
		"unknown fields":              table + num(9, 1) + msg(5, num(7, 1), refs, "\x3d1234", sample, msg(8, "x")),
		"fields of samples, reversed": table + msg(5, refs, msg(2, num(3, 5), num(2, 7), dbl(1, 1))),
		"a sample with an unknown":    table + msg(5, refs, msg(2, dbl(1, 1), num(2, 7), num(3, 5), num(4, 1))),
		"long tags":                   table + msg(5, "\x8a\x00"+uv(4)+packed(1, 2, 3, 4), "\x92\x80\x00"+sample[1:]),
		"created, of early versions":  table + msg(5, refs, msg(2, dbl(1, 1), num(2, 7)), num(6, 5)),
		"created before the samples":  table + msg(5, num(6, 5), refs, msg(2, dbl(1, 1), num(2, 7))),
		"start and created":           table + msg(5, refs, sample, num(6, 4)),
		"unused symbols":              table + symbolsOf("x", strings.Repeat("y", 1000)) + msg(5, refs, sample),
		"metadata in two pieces":      table + msg(5, refs, sample, msg(5, num(1, 2)), msg(5, num(3, 0))),
	} {
		t.Run(what, func(t *testing.T) {
			var req writev2.Request
			if err := req.Unmarshal([]byte(raw)); err != nil {
				t.Fatalf("the test's own bytes: %v", err)
			}
			compare(t, v2, []byte(raw), expectedV2(&req))
			got, err := walked(v2, []byte(raw))
			if err != nil || len(got.Rows) != 1 || got.Rows[0].Labels != `{__name__="m", a="b"}` || got.Rows[0].Time != 7_000_000 || got.Rows[0].Start != 5_000_000 {
				t.Fatalf("got %v, %v", got, err)
			}
			h, s := newHandler(t, testLimits())
			if w := sendV2(h, snappy.Encode(nil, []byte(raw))); w.Code != 204 || w.Header().Get("X-Prometheus-Remote-Write-Samples-Written") != "1" {
				t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
			}
			if s.Rows[`anonymous{__name__="m", a="b"}`] == nil {
				t.Fatalf("stored %v", s.Rows)
			}
		})
	}
}

// TestStartsOfMixedRows: the created timestamp of a series applies to those of its rows that have no
// start timestamp, and to no other series.
func TestStartsOfMixedRows(t *testing.T) {
	r := newRequestV2()
	r.series(func(ts *writev2.TimeSeries) { ts.Samples = []writev2.Sample{{Value: 1, Timestamp: 1}} }, "__name__", "before")
	r.series(func(ts *writev2.TimeSeries) {
		ts.Samples = []writev2.Sample{{Value: 1, Timestamp: 1}, {Value: 1, Timestamp: 2, StartTimestamp: 9}}
		ts.Histograms = []writev2.Histogram{writev2.FromIntHistogram(0, 3, latencies(0)), writev2.FromIntHistogram(8, 4, latencies(0))}
		ts.XXX_unrecognized = field6(7)
	}, "__name__", "mixed")
	r.series(func(ts *writev2.TimeSeries) { ts.Samples = []writev2.Sample{{Value: 1, Timestamp: 1}} }, "__name__", "after")
	got, err := walked(v2, marshalV2(t, r.done()))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{0, 7, 9, 7, 8, 0} {
		if got.Rows[i].Start != want*1_000_000 {
			t.Errorf("row %d starts at %d, want %d ms", i, got.Rows[i].Start, want)
		}
	}
}

func TestMalformedV2(t *testing.T) { malformedBodies(t, v2, malformedV2()) }

// malformedV2 are bodies that are not a Request.
func malformedV2() map[string]string {
	table := symbolsOf("", "__name__", "m")
	bodies := map[string]string{
		"cut off tag":                "\x8a",
		"field number 0":             "\x02\x00",
		"a group":                    "\x4b\x4c",
		"symbol as number":           num(4, 1),
		"symbol longer than body":    "\x22\x05a",
		"first symbol not empty":     symbolsOf("a"),
		"series without symbols":     msg(5, msg(1, packed(1, 2))),
		"series as number":           table + num(5, 1),
		"series cut off":             table + "\x2a\x05\x0a",
		"version 1: series":          msg(1, label("__name__", "m")),
		"version 1: metadata":        msg(3, msg(2, "m")),
		"references as double":       table + msg(5, dbl(1, 1)),
		"references cut off":         table + msg(5, msg(1, "\x01\x82"), msg(2, dbl(1, 1))),
		"a lone reference cut off":   table + msg(5, "\x08\x82"),
		"second piece cut off":       table + msg(5, msg(1, "\x01"), msg(1, "\x82")),
		"first of two pieces cut":    table + msg(5, msg(1, "\x82"), msg(1, "\x01")),
		"sample as number":           table + msg(5, num(2, 1)),
		"sample value as varint":     table + msg(5, msg(2, num(1, 1))),
		"start timestamp as double":  table + msg(5, msg(2, dbl(3, 1))),
		"exemplar as number":         table + msg(5, num(4, 1)),
		"exemplar refs as double":    table + msg(5, msg(4, dbl(1, 1))),
		"exemplar refs cut off":      table + msg(5, msg(4, msg(1, "\x82"))),
		"exemplar ref cut off":       table + msg(5, msg(4, "\x08\x82")),
		"exemplar value as varint":   table + msg(5, msg(4, num(2, 1))),
		"exemplar time as double":    table + msg(5, msg(4, dbl(3, 1))),
		"metadata as number":         table + msg(5, num(5, 1)),
		"metadata type as string":    table + msg(5, msg(5, msg(1, "x"))),
		"help reference as double":   table + msg(5, msg(5, dbl(3, 1))),
		"unit reference as string":   table + msg(5, msg(5, msg(4, "x"))),
		"created timestamp as text":  table + msg(5, msg(6, "x")),
		"unknown field of a series":  table + msg(5, "\x3f"),
		"start of a histogram":       table + msg(5, msg(3, dbl(17, 1))),
		"a good series, then half":   table + msg(5, msg(1, packed(1, 2)), msg(2, dbl(1, 1), num(2, nowMs))) + "\x2a\x09\x0a",
		"unknown field cut off":      "\x49\x00",
		"unknown length beyond body": msg(9, "") + "\x52\x7f",
	}
	for what, body := range malformedHistograms() {
		bodies["histogram: "+what] = table + msg(5, msg(3, body))
	}
	return bodies
}

// TestReferences: series with wrong references are rejected, and the others are stored.
func TestReferences(t *testing.T) {
	table, good, bad := badReferences()
	for what, c := range bad {
		h, s := newHandler(t, testLimits())
		w := sendV2(h, snappy.Encode(nil, []byte(table+good+c.series+good)))
		if w.Code != 400 || !strings.Contains(w.Body.String(), c.text) || w.Header().Get("X-Prometheus-Remote-Write-Samples-Written") != "2" {
			t.Errorf("%s: %d %v %s", what, w.Code, w.Header(), w.Body)
		}
		if r := s.Rows[`anonymous{__name__="m"}`]; r == nil || r.Len() != 2 {
			t.Errorf("%s: stored %v", what, s.Rows)
		}
	}
}

type badReference struct{ series, text string }

// badReferences are time series whose references are wrong, with symbols and a good one to go with them.
func badReferences() (table, good string, bad map[string]badReference) {
	table = symbolsOf("", "__name__", "m", "a", "b")
	sample := msg(2, dbl(1, 1), num(2, nowMs))
	good = msg(5, msg(1, packed(1, 2)), sample)
	return table, good, map[string]badReference{
		"odd number":          {msg(5, msg(1, packed(1, 2, 3)), sample), "1 invalid_reference\n  invalid_reference: references [1 2 3]: expected pairs of references to name and value, got an odd number: 3"},
		"name out of range":   {msg(5, msg(1, packed(1, 2, 5, 3)), sample), "the reference 5 is out of range: the request has 5 symbols"},
		"value out of range":  {msg(5, msg(1, packed(1, 5)), sample), "the reference 5 is out of range: the request has 5 symbols"},
		"largest reference":   {msg(5, msg(1, packed(1, 1<<32-1)), sample), "the reference 4294967295 is out of range: the request has 5 symbols"},
		"help out of range":   {msg(5, msg(1, packed(1, 2)), sample, msg(5, num(3, 9))), "the reference 9"},
		"unit out of range":   {msg(5, msg(1, packed(1, 2)), sample, msg(5, num(4, 9))), "the reference 9"},
		"no references":       {msg(5, sample), "1 invalid_labels\n  invalid_labels: {}: the series has no metric name"},
		"only empty values":   {msg(5, msg(1, packed(1, 0)), sample), "no metric name"},
		"name twice":          {msg(5, msg(1, packed(1, 2, 1, 4)), sample), "duplicate_label_name"},
		"too many references": {msg(5, msg(1, strings.Repeat("\x01\x02", maxRefs/2+1)), sample), "1 too_many_labels"},
		"exemplar, odd":       {msg(5, msg(1, packed(1, 2)), msg(4, msg(1, packed(1)))), "exemplar: expected pairs of references"},
		"exemplar, range":     {msg(5, msg(1, packed(1, 2)), msg(4, msg(1, packed(1, 7)))), "exemplar: the reference 7"},
		"empty series":        {msg(5, msg(1, packed(1, 2))), "1 time series without samples, histograms or exemplars\n  {\"__name__\"=\"m\"}"},
		"nothing at all":      {msg(5, ""), "1 time series without samples"},
		"metadata alone":      {msg(5, msg(1, packed(1, 2)), msg(5, num(1, 1))), "1 time series without samples"},
		"created in 300 AD":   {msg(5, msg(1, packed(1, 2)), sample, num(6, math.MaxUint64-50_000_000_000_000)), "created timestamp -50000000000001 ms is not between"},
	}
}

// TestExpansionIsBounded sends a small body that expands to a large one: each series refers to the same
// long value.
func TestExpansionIsBounded(t *testing.T) {
	limits := testLimits()
	limits.MaxValueBytes = model.MaxLabelBytes
	h, s := newHandler(t, limits)
	table := symbolsOf("", "__name__", strings.Repeat("m", 500_000), strings.Repeat("x", model.MaxLabelBytes+1))
	sample := msg(2, dbl(1, 1), num(2, nowMs))
	w := sendV2(h, snappy.Encode(nil, []byte(table+strings.Repeat(msg(5, msg(1, packed(1, 2)), sample), 9))))
	if w.Code != 413 || !strings.Contains(w.Body.String(), "limits.decoded-bytes") {
		t.Errorf("%d %.500s", w.Code, w.Body)
	}
	// A symbol that cannot be a value is never copied, however often it occurs; what precedes it is
	// counted.
	for refs, code := range map[string]int{packed(1, 3): 400, packed(1, 2, 1, 3): 413} {
		w = sendV2(h, snappy.Encode(nil, []byte(table+strings.Repeat(msg(5, msg(1, refs), sample), 2000))))
		if w.Code != code || code == 400 && !strings.Contains(w.Body.String(), "2000 "+write.ReasonLabelsTooLong) {
			t.Errorf("%d %.500s", w.Code, w.Body)
		}
	}
	if len(s.Rows) != 0 {
		t.Errorf("stored %d series", len(s.Rows))
	}
}

func FuzzWalkV2(f *testing.F) {
	f.Add(marshalV2(f, translate(fleet(2))))
	f.Add(marshalV2(f, everything().done()))
	table := symbolsOf("", "__name__", "m", "a", "b")
	sample := msg(2, dbl(1, 1), num(2, 7), num(3, 5))
	f.Add([]byte(table + msg(5, msg(1, packed(1, 2, 3, 4)), sample, num(6, 5))))
	f.Add([]byte(msg(5, num(1, 1), num(1, 2), sample, msg(1, packed(3, 4))) + table))
	f.Add([]byte(table + msg(5, msg(1, packed(1, 2, 3)), sample) + msg(5, msg(1, packed(1, 9)), sample)))
	for _, body := range malformedHistograms() {
		f.Add([]byte(table + msg(5, msg(1, packed(1, 2)), msg(3, body))))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := walked(v2, raw)
		var req writev2.Request
		judge := req.Unmarshal(raw)
		if disagree(t, err, judge) {
			compare(t, v2, raw, expectedV2(&req))
		}
	})
}
