package promwrite

import (
	"math"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// readHistogram walks one Histogram message of either version and returns what is stored, or why it is not.
func readHistogram(t *testing.T, v version, limits write.Limits, body string) (h model.Histogram, r *model.Rows, left write.Rejections) {
	t.Helper()
	raw := msg(1, label("__name__", "m"), msg(4, body))
	if v == v2 {
		raw = symbolsOf("", "__name__", "m") + msg(5, msg(1, packed(1, 2)), msg(3, body))
	}
	w, b := new(walker), new(model.Batch)
	w.start(v, []byte(raw), seed, limits, b, func(int64) error { return nil })
	if err := w.walk(); err != nil {
		t.Fatal(err)
	}
	if b.Samples.Len() == 0 {
		return h, nil, w.left
	}
	if err := h.Parse(b.Samples.Blob(0)); err != nil || b.Samples.Kind(0) != model.KindHistogram {
		t.Fatal(err)
	}
	return h, &b.Samples.Rows, nil
}

func spanMsg(number protowire.Number, offset int64, length uint64) string {
	return msg(number, num(1, uint64(offset<<1^offset>>63)), num(2, length))
}

// dblBits is a double of any bits.
func dblBits(number protowire.Number, v uint64) string { return dbl(number, math.Float64frombits(v)) }

// TestHistogramSpellings: all protobuf encodings of a histogram give the same histogram.
func TestHistogramSpellings(t *testing.T) {
	const odd = 0x7ff8_0000_dead_beef // a NaN
	start := dblBits(3, odd) + num(4, 6) + dbl(5, 0.25) + num(15, 7)
	integer := model.Histogram{
		Schema: 3, Sum: odd, ZeroThreshold: math.Float64bits(0.25), Count: 10, ZeroCount: 1,
		PositiveSpans: []model.HistogramSpan{{Offset: -2, Length: 2}, {Offset: 1, Length: 1}}, Positive: []uint64{2, 1, math.MaxUint64},
		NegativeSpans: []model.HistogramSpan{{Offset: 5, Length: 1}}, Negative: []uint64{2},
	}
	float := integer
	float.Float, float.Count, float.ZeroCount = true, uint64(1<<63), odd+1
	float.Positive, float.Negative = []uint64{odd + 2, model.StaleNaN, math.Float64bits(1.5)}, []uint64{math.Float64bits(2)}
	spans := spanMsg(11, -2, 2) + spanMsg(11, 1, 1) + spanMsg(8, 5, 1)
	intCounts, floatCounts := num(1, 10)+num(6, 1), dblBits(2, 1<<63)+dblBits(7, odd+1)
	floats := msg(13, string([]byte(dblBits(1, odd+2))[1:])+string([]byte(dblBits(1, model.StaleNaN))[1:])+packedDoubles(1.5)) + msg(10, packedDoubles(2))
	for what, c := range map[string]struct {
		body string
		want model.Histogram
	}{
		"integers":                     {start + intCounts + spans + msg(12, packed(4, 2, 1)) + msg(9, packed(4)), integer},
		"integers, not packed":         {start + num(12, 4) + num(12, 2) + num(9, 4) + num(12, 1) + spans + intCounts, integer},
		"packed in pieces":             {msg(12, packed(4)) + start + msg(12, packed(2, 1)) + spans + intCounts + msg(9, "") + msg(9, packed(4)), integer},
		"deltas with long varints":     {start + intCounts + spans + msg(12, "\x84\x00\x82\x80\x00\x01") + msg(9, packed(4)), integer},
		"counts of the other kind too": {start + intCounts + spans + msg(12, packed(4, 2, 1)) + msg(9, packed(4)) + floats, integer},
		"integers after floats":        {start + floatCounts + intCounts + spans + msg(12, packed(4, 2, 1)) + msg(9, packed(4)), integer},
		"schema in a long varint":      {start + num(4, 1<<32|6) + intCounts + spans + msg(12, packed(4, 2, 1)) + msg(9, packed(4)), integer},
		"sum twice":                    {dbl(3, 1) + start + intCounts + spans + msg(12, packed(4, 2, 1)) + msg(9, packed(4)), integer},
		"unknown fields":               {start + num(18, 1) + intCounts + spans + msg(12, packed(4, 2, 1)) + "\xa2\x06\x01x" + msg(9, packed(4)), integer},
		"floats":                       {start + floatCounts + spans + floats, float},
		"floats after integers":        {start + intCounts + floatCounts + spans + floats, float},
		"floats, not packed":           {start + floatCounts + spans + dblBits(13, odd+2) + dblBits(13, model.StaleNaN) + dbl(13, 1.5) + dbl(10, 2), float},
	} {
		for _, v := range []version{v1, v2} {
			got, rows, left := readHistogram(t, v, write.Limits{}, c.body)
			if diff := cmp.Diff(c.want, got); diff != "" || rows.Times[0] != 7_000_000 {
				t.Errorf("%s, version %s: left out %v, %s", what, v, left, diff)
			}
		}
	}
	// A zero count of the other form is ignored, as upstream does.
	zero := integer
	zero.ZeroCount, zero.Count = 0, 9
	if got, _, left := readHistogram(t, v1, write.Limits{}, start+num(1, 9)+dbl(7, 5)+spans+msg(12, packed(4, 2, 1))+msg(9, packed(4))); cmp.Diff(zero, got) != "" {
		t.Errorf("a float zero count of an integer histogram: %+v %v", got, left)
	}
}

func TestHistogramMarkers(t *testing.T) {
	for hint, gauge := range []bool{false, false, false, true, false} {
		if got, _, _ := readHistogram(t, v2, write.Limits{}, num(14, uint64(hint))+num(15, 1)); got.Gauge != gauge {
			t.Errorf("hint %d: gauge %t", hint, got.Gauge)
		}
	}
	stale := dblBits(3, model.StaleNaN) + num(15, 1)
	for _, body := range []string{stale, dbl(2, 0) + stale} {
		for _, v := range []version{v1, v2} {
			if got, rows, left := readHistogram(t, v, write.Limits{}, body); rows == nil || !rows.IsStale(0) || got.Sum != model.StaleNaN {
				t.Errorf("version %s: a stale marker: %+v, %v", v, got, left)
			}
		}
	}
	body := num(15, 5) + num(17, 3)
	if _, rows, _ := readHistogram(t, v2, write.Limits{}, body); rows.Start(0) != 3_000_000 {
		t.Errorf("starts at %d", rows.Start(0))
	}
	if _, rows, _ := readHistogram(t, v1, write.Limits{}, body); rows.Start(0) != 0 {
		t.Errorf("version 1 starts at %d", rows.Start(0))
	}
}

// TestHistogramsThatAreLeftOut breaks each rule of upstream, and each of ours.
func TestHistogramsThatAreLeftOut(t *testing.T) {
	limits := write.Limits{MaxBuckets: 4}
	for what, c := range badHistograms() {
		for _, v := range []version{v1, v2} {
			_, rows, left := readHistogram(t, v, limits, c.body)
			if rows != nil || len(left) != 1 || left[0].Reason != c.reason || left[0].ByKind.Histograms != 1 || !strings.Contains(left[0].Examples[0], c.text) {
				t.Errorf("%s, version %s: %v", what, v, left)
			}
		}
	}
	if _, _, left := readHistogram(t, v2, limits, num(15, 1)+num(17, 1<<62)); len(left) != 1 || !strings.Contains(left[0].Examples[0], "start timestamp") {
		t.Errorf("start timestamp: %v", left)
	}
	for what, body := range map[string]string{
		"4 of 4":   spanMsg(11, 0, 4) + msg(12, packed(2, 0, 0, 0)) + num(1, 4) + strings.Repeat(spanMsg(11, 0, 0), 3),
		"4 bounds": num(4, 105) + num(15, 1) + msg(16, packedDoubles(1, 2, 3, 4)),
	} {
		if _, rows, left := readHistogram(t, v1, limits, body); rows == nil {
			t.Errorf("%s: %v", what, left)
		}
	}
}

type badHistogram struct{ body, reason, text string }

// badHistograms are left out where a histogram may have 4 buckets.
func badHistograms() map[string]badHistogram {
	custom := num(4, 105) + num(15, 1) // schema -53
	ones := func(n int) []uint64 { return append([]uint64{2}, make([]uint64, n-1)...) }
	return map[string]badHistogram{
		"schema -10":               {num(4, 19), write.ReasonHistogram, "invalid schema"},
		"schema -5":                {num(4, 9), write.ReasonHistogram, "invalid schema"},
		"schema 53":                {num(4, 106), write.ReasonHistogram, "invalid schema"},
		"schema 9, spans differ":   {num(4, 18) + spanMsg(11, 0, 2) + msg(12, packed(2)), write.ReasonHistogram, "spans need"},
		"too few buckets":          {spanMsg(11, 0, 2) + msg(12, packed(2)), write.ReasonHistogram, "positive side: spans need 2 buckets, have 1"},
		"too many buckets":         {spanMsg(8, 0, 1) + msg(9, packed(2, 2)), write.ReasonHistogram, "negative side: spans need 1 buckets, have 2"},
		"span back":                {spanMsg(11, 0, 1) + spanMsg(11, -1, 1) + msg(12, packed(2, 0)) + num(1, 2), write.ReasonHistogram, "offset is negative"},
		"negative bucket":          {spanMsg(11, 0, 1) + msg(12, packed(1)), write.ReasonHistogram, "observation count is negative"},
		"negative float bucket":    {dbl(2, 1) + spanMsg(11, 0, 1) + msg(13, packedDoubles(-1)), write.ReasonHistogram, "observation count is negative"},
		"negative float count":     {dbl(2, -1), write.ReasonHistogram, "count is negative"},
		"count too small":          {num(1, 1) + num(6, 2), write.ReasonHistogram, "Count field is 1"},
		"count too large":          {num(1, 3) + num(6, 2), write.ReasonHistogram, "Count field is 3"},
		"count too small with NaN": {num(1, 1) + num(6, 2) + dblBits(3, 0x7ff8000000000001), write.ReasonHistogram, "Count field is 1"},
		"bounds without -53":       {msg(16, packedDoubles(1)), write.ReasonHistogram, "must not have custom bounds"},
		"bounds not ascending":     {custom + msg(16, packedDoubles(1, 1)), write.ReasonHistogram, "strictly increasing"},
		"bound NaN":                {custom + dblBits(16, 0x7ff8000000000001), write.ReasonHistogram, "NaN"},
		"bound +Inf":               {custom + msg(16, packedDoubles(math.Inf(1))), write.ReasonHistogram, "+Inf"},
		"too few bounds":           {custom + msg(16, packedDoubles(1)) + spanMsg(11, 2, 1) + msg(12, packed(2)) + num(1, 1), write.ReasonHistogram, "insufficient"},
		"custom zero count":        {custom + num(1, 1) + num(6, 1), write.ReasonHistogram, "zero count of 0"},
		"custom zero threshold":    {custom + dbl(5, 1), write.ReasonHistogram, "zero threshold of 0"},
		"zero threshold NaN":       {dblBits(5, 0x7ff8000000000001), write.ReasonHistogram, "threshold is not a number"},
		"custom negative spans":    {custom + spanMsg(8, 0, 0), write.ReasonHistogram, "negative spans"},
		"custom negative buckets":  {custom + msg(9, packed(2)), write.ReasonHistogram, "negative buckets"},
		"5 deltas of 4":            {spanMsg(11, 0, 5) + msg(12, packed(ones(5)...)), write.ReasonTooManyBuckets, "more than 4 buckets"},
		"5 lone deltas of 4":       {strings.Repeat(num(9, 2), 5), write.ReasonTooManyBuckets, "more than 4 buckets"},
		"5 counts of 4":            {dbl(2, 0) + msg(13, packedDoubles(1, 2, 3, 4, 5)), write.ReasonTooManyBuckets, "more than 4 buckets"},
		"5 spans of 4":             {strings.Repeat(spanMsg(11, 0, 0), 5), write.ReasonTooManyBuckets, "more than 4 buckets"},
		"5 bounds of 4":            {custom + msg(16, packedDoubles(1, 2, 3, 4, 5)), write.ReasonTooManyBuckets, "more than 4 buckets"},
		"time":                     {num(15, 1<<62), write.ReasonTimeRange, "the time 4611686018427387904 ms"},
	}
}

// TestLargestHistogramFits: a histogram at the limits is not larger than a stored value may be.
func TestLargestHistogramFits(t *testing.T) {
	n := write.MostBuckets
	h := model.Histogram{Positive: make([]uint64, n), Negative: make([]uint64, n), Custom: make([]uint64, n)}
	for i := range n {
		h.Positive[i], h.Negative[i] = 1<<63, 1<<63 // the longest deltas
		h.PositiveSpans = append(h.PositiveSpans, model.HistogramSpan{Offset: math.MinInt32, Length: math.MaxUint32})
	}
	h.NegativeSpans = h.PositiveSpans
	if size := len(model.AppendHistogram(nil, &h)); size > 1<<20 {
		t.Fatalf("%d bytes", size)
	}
}

// TestFineHistogramsAreReduced sends schemas that Prometheus reduces, through the whole of the write path.
func TestFineHistogramsAreReduced(t *testing.T) {
	h, s := newHandler(t, testLimits())
	fine := latencies(1)
	fine.Schema = 12
	ts := prompb.TimeSeries{
		Labels:     []prompb.Label{{Name: "__name__", Value: "m"}},
		Histograms: []prompb.Histogram{prompb.FromIntHistogram(nowMs, fine), prompb.FromFloatHistogram(nowMs+1, fine.ToFloat(nil))},
	}
	if w := send(h, encode(t, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{ts}})); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	rows := s.Rows[`anonymous{__name__="m"}`]
	for i := range 2 {
		var got model.Histogram
		if err := got.Parse(rows.Blob(i)); err != nil || got.Schema != 8 || got.Float != (i == 1) || len(got.Positive) >= len(fine.PositiveBuckets) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	// The batch is in memory that is used again: a second request does not disturb the first.
	first := string(rows.Blob(0))
	send(h, snappy.Encode(nil, []byte(msg(1, label("__name__", "n"), msg(4, num(15, nowMs))))))
	if string(rows.Blob(0)) != first {
		t.Error("the stored histogram has changed")
	}
}
