package prom_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
)

const (
	asSamples = prompb.ReadRequest_SAMPLES
	asChunks  = prompb.ReadRequest_STREAMED_XOR_CHUNKS
)

func readBody(t testing.TB, kind prompb.ReadRequest_ResponseType, queries ...*prompb.Query) []byte {
	t.Helper()
	r := prompb.ReadRequest{Queries: queries, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{kind}}
	b, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return snappy.Encode(nil, b)
}

// of selects the metrics whose names match, at any time.
func of(name string) *prompb.Query {
	return &prompb.Query{StartTimestampMs: -1e12, EndTimestampMs: 1e12, Matchers: []*prompb.LabelMatcher{{Type: prompb.LabelMatcher_RE, Name: "__name__", Value: name}}}
}

func (w *world) read(body []byte, headers ...string) *httptest.ResponseRecorder {
	return w.Send(httptest.NewRequest("POST", "/api/v1/read", bytes.NewReader(body)), headers)
}

// refused checks a refusal in text.
func refused(t testing.TB, r *httptest.ResponseRecorder, code int, words string) {
	t.Helper()
	if r.Code != code || !strings.Contains(r.Body.String(), words) || r.Header().Get("Content-Type") != "text/plain; charset=utf-8" || r.Header().Get("Content-Encoding") != "" ||
		r.Header().Get("Shale-Cost") == "" {
		t.Errorf("got %d %v %.300q, want %d with %q", r.Code, r.Header(), r.Body, code, words)
	}
}

func decodeSamples(t rapid.TB, r *httptest.ResponseRecorder) *prompb.ReadResponse {
	t.Helper()
	if r.Code != 200 || r.Header().Get("Content-Type") != "application/x-protobuf" || r.Header().Get("Content-Encoding") != "snappy" {
		t.Fatalf("%d %v %.200q", r.Code, r.Header(), r.Body)
	}
	b, err := snappy.Decode(nil, r.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	out := new(prompb.ReadResponse)
	if err := out.Unmarshal(b); err != nil {
		t.Fatal(err)
	}
	// What is written by hand is what the generated code writes, but for zeros with a sign.
	if again, err := out.Marshal(); err != nil || !bytes.Equal(again, b) && !hasMinusZero(out) {
		t.Errorf("encoded as %x, generated code writes %x: %v", b, again, err)
	}
	return out
}

func hasMinusZero(r *prompb.ReadResponse) bool {
	for _, q := range r.Results {
		for _, s := range q.Timeseries {
			for _, p := range s.Samples {
				if p.Value == 0 && math.Signbit(p.Value) {
					return true
				}
			}
		}
	}
	return false
}

// frames splits a stream.
func frames(t rapid.TB, body []byte) (out []*prompb.ChunkedReadResponse) {
	t.Helper()
	for len(body) > 0 {
		n, used := binary.Uvarint(body)
		body = body[used:]
		sum := binary.BigEndian.Uint32(body)
		message := body[4 : 4+n]
		body = body[4+n:]
		if crc32.Checksum(message, crc32.MakeTable(crc32.Castagnoli)) != sum {
			t.Fatal("checksum")
		}
		f := new(prompb.ChunkedReadResponse)
		if err := f.Unmarshal(message); err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func decodeChunks(t rapid.TB, r *httptest.ResponseRecorder) []*prompb.ChunkedReadResponse {
	t.Helper()
	if r.Code != 200 || r.Header().Get("Content-Type") != "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse" || r.Header().Get("Content-Encoding") != "" {
		t.Fatalf("%d %v %.200q", r.Code, r.Header(), r.Body)
	}
	return frames(t, r.Body.Bytes())
}

// fakeStore serves series as they are.
func fakeStore(all ...storage.Series) func(*prom.Options) {
	return func(o *prom.Options) {
		o.Queryable = func(string, *model.Quota, *model.Cost) storage.Queryable {
			return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: func(bool, *storage.SelectHints, ...*labels.Matcher) storage.SeriesSet {
				return &listSet{all: all, at: -1}
			}}}
		}
	}
}

type listSet struct {
	storage.SeriesSet
	all []storage.Series
	at  int
}

func (s *listSet) Next() bool         { s.at++; return s.at < len(s.all) }
func (s *listSet) At() storage.Series { return s.all[s.at] }
func (s *listSet) Err() error         { return nil }

// point is a sample of one of the three kinds.
type point struct {
	st, t int64
	f     float64
	h     *histogram.Histogram
	fh    *histogram.FloatHistogram
}

func (p point) ST() int64                     { return p.st }
func (p point) T() int64                      { return p.t }
func (p point) F() float64                    { return p.f }
func (p point) H() *histogram.Histogram       { return p.h }
func (p point) FH() *histogram.FloatHistogram { return p.fh }
func (p point) Copy() chunks.Sample           { return p }
func (p point) Type() chunkenc.ValueType {
	switch {
	case p.h != nil:
		return chunkenc.ValHistogram
	case p.fh != nil:
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

func listed(l labels.Labels, points ...point) storage.Series {
	samples := make([]chunks.Sample, len(points))
	for i, p := range points {
		samples[i] = p
	}
	return storage.NewListSeries(l, samples)
}

// shown is a sample in text, to the bit.
func shown(p point) string {
	switch {
	case p.h != nil:
		return fmt.Sprintf("%d %s", p.t, p.h)
	case p.fh != nil:
		return fmt.Sprintf("%d %s", p.t, p.fh)
	}
	return fmt.Sprintf("%d %x", p.t, math.Float64bits(p.f))
}

func shownChunks(t rapid.TB, list []prompb.Chunk) (out []string) {
	t.Helper()
	for _, c := range list {
		chunk, err := chunkenc.FromData(chunkenc.Encoding(c.Type), c.Data)
		if err != nil {
			t.Fatal(err)
		}
		it := chunk.Iterator(nil)
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			var p point
			switch kind {
			case chunkenc.ValFloat:
				p.t, p.f = it.At()
			case chunkenc.ValHistogram:
				p.t, p.h = it.AtHistogram(nil)
			case chunkenc.ValFloatHistogram:
				p.t, p.fh = it.AtFloatHistogram(nil)
			}
			if p.t < c.MinTimeMs || p.t > c.MaxTimeMs {
				t.Errorf("a sample at %d in a chunk of [%d, %d]", p.t, c.MinTimeMs, c.MaxTimeMs)
			}
			out = append(out, shown(p))
		}
	}
	return out
}

// TestReadKeepsEveryBit sends samples of every kind both ways.
func TestReadKeepsEveryBit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all []storage.Series
		var want [][]string
		for i := range rapid.IntRange(0, 4).Draw(rt, "series") {
			at, kind := rapid.Int64Range(-1e12, 1e12).Draw(rt, "begin"), 0
			var ps []point
			var texts []string
			for j := range rapid.IntRange(1, 200).Draw(rt, "samples") {
				if j == 0 || rapid.IntRange(0, 20).Draw(rt, "change") == 0 {
					kind = rapid.IntRange(0, 5).Draw(rt, "kind")
				}
				p := point{t: at, st: rapid.SampledFrom([]int64{0, at - 5}).Draw(rt, "start")}
				n := int64(j)
				switch kind {
				case 0, 1:
					p.f = math.Float64frombits(rapid.SampledFrom([]uint64{0, 1 << 63, value.StaleNaN, 0x7ff8000000000123, math.Float64bits(float64(j)), rapid.Uint64().Draw(rt, "bits")}).Draw(rt, "f"))
				case 2:
					p.h = tsdbutil.GenerateTestHistogram(n)
				case 3:
					p.fh = tsdbutil.GenerateTestFloatHistogram(n)
				case 4:
					p.h = tsdbutil.GenerateTestCustomBucketsHistogram(n)
				case 5:
					p.fh = tsdbutil.GenerateTestGaugeFloatHistogram(n)
				}
				ps, texts = append(ps, p), append(texts, shown(p))
				at += rapid.Int64Range(1, 100_000).Draw(rt, "step")
			}
			all, want = append(all, listed(labels.FromStrings("__name__", "m", "i", fmt.Sprint(i)), ps...)), append(want, texts)
		}
		w := newWorld(t, func(o *prom.Options) {
			fakeStore(all...)(o)
			o.MaxReadFrameBytes = rapid.IntRange(1, 3000).Draw(rt, "frame")
		})
		got := map[string][]string{}
		for _, s := range decodeSamples(rt, w.read(readBody(t, asSamples, of(".*")))).Results[0].Timeseries {
			name := s.Labels[1].Value
			for i, p := 0, 0; i < len(s.Samples) || p < len(s.Histograms); {
				if p == len(s.Histograms) || i < len(s.Samples) && s.Samples[i].Timestamp < s.Histograms[p].Timestamp {
					got[name] = append(got[name], shown(point{t: s.Samples[i].Timestamp, f: s.Samples[i].Value}))
					i++
					continue
				}
				h := s.Histograms[p]
				if h.IsFloatHistogram() {
					got[name] = append(got[name], shown(point{t: h.Timestamp, fh: h.ToFloatHistogram()}))
				} else {
					got[name] = append(got[name], shown(point{t: h.Timestamp, h: h.ToIntHistogram()}))
				}
				p++
			}
		}
		streamed := map[string][]string{}
		for _, f := range decodeChunks(rt, w.read(readBody(t, asChunks, of(".*")))) {
			for _, s := range f.ChunkedSeries {
				for _, c := range s.Chunks {
					if c.Type > prompb.Chunk_FLOAT_HISTOGRAM {
						rt.Fatalf("a chunk of encoding %s, which not every client knows", c.Type)
					}
				}
				streamed[s.Labels[1].Value] = append(streamed[s.Labels[1].Value], shownChunks(rt, s.Chunks)...)
			}
		}
		for i := range want {
			name := fmt.Sprint(i)
			if d := cmp.Diff(want[i], got[name]); d != "" {
				rt.Fatalf("samples: %s", d)
			}
			if d := cmp.Diff(want[i], streamed[name]); d != "" {
				rt.Fatalf("chunks: %s", d)
			}
		}
	})
}

func TestReadOverTheStore(t *testing.T) {
	w := newWorld(t, nil)
	w.MustLoad(t, "anonymous", `up{job="a"} 900:1 990:-0`, `up{job="b"} 990.5:NaN`, `temp 880:7`)
	w.MustLoad(t, "other", `up{job="secret"} 990:1`)
	r := decodeSamples(t, w.read(readBody(t, asSamples, of("up"), of("nothing"), of("temp"))))
	if len(r.Results) != 3 || len(r.Results[0].Timeseries) != 2 || len(r.Results[1].Timeseries) != 0 || len(r.Results[2].Timeseries) != 1 {
		t.Fatalf("%v", r)
	}
	if s := r.Results[0].Timeseries[0].Samples; !math.Signbit(s[len(s)-1].Value) && !math.IsNaN(s[0].Value) {
		t.Errorf("%v", s)
	}
	fs := decodeChunks(t, w.read(readBody(t, asChunks, of("up"), of("nothing"), of("temp"))))
	if len(fs) != 3 || fs[0].QueryIndex != 0 || fs[2].QueryIndex != 2 || fs[0].ChunkedSeries[0].Labels[1].Value != "a" {
		t.Errorf("%v", fs)
	}
	if out := w.read(readBody(t, asChunks, of("up")), "X-Scope-OrgID: other", "Accept-Encoding: gzip"); len(decodeChunks(t, out)) != 1 {
		t.Error(apitest.Show(out))
	}
	// The client asks for names only: every series comes, without a sample.
	names := of("up")
	names.Hints = &prompb.ReadHints{Func: "series", StartMs: -1e12, EndMs: 1e12}
	for _, f := range decodeChunks(t, w.read(readBody(t, asChunks, names))) {
		if got := shownChunks(t, f.ChunkedSeries[0].Chunks); len(got) != 0 || len(f.ChunkedSeries[0].Chunks) != 1 {
			t.Errorf("%v", f)
		}
	}
	if n := len(decodeSamples(t, w.read(readBody(t, asSamples, names))).Results[0].Timeseries); n != 2 {
		t.Errorf("%d series", n)
	}
	// The aggregation of the client does not change the series: it may combine them with others.
	summed := of("up")
	summed.Hints = &prompb.ReadHints{Func: "sum", By: true, StartMs: 0, EndMs: 1e6}
	for _, got := range decodeSamples(t, w.read(readBody(t, asSamples, summed))).Results[0].Timeseries {
		if len(got.Labels) != 2 {
			t.Errorf("%v", got)
		}
	}
	// Hints bound the samples.
	late := of("up")
	late.Hints = &prompb.ReadHints{StartMs: 950_000, EndMs: 990_000}
	if n := len(decodeSamples(t, w.read(readBody(t, asSamples, late))).Results[0].Timeseries); n != 1 {
		t.Errorf("%d series", n)
	}
}

func (f failing) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return failingIterator{f.Series.Iterator(nil), f.err}
}

type failingIterator struct {
	chunkenc.Iterator
	err error
}

func (f failingIterator) Err() error { return f.err }

// TestReadThatFailsLate must not look whole to the client.
func TestReadThatFailsLate(t *testing.T) {
	var ps []point
	for i := range 50_000 {
		ps = append(ps, point{t: int64(i), f: math.Sqrt(float64(i))})
	}
	l := labels.FromStrings("__name__", "m")
	w := newWorld(t, fakeStore(listed(l, ps...), failing{listed(l, ps...), fmt.Errorf("%w: page 9", model.ErrCorrupt)}))
	s := httptest.NewServer(w)
	defer s.Close()
	defer s.Client().CloseIdleConnections()
	resp, err := s.Client().Post(s.URL+"/api/v1/read", "", bytes.NewReader(readBody(t, asChunks, of("m"))))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err == nil || resp.StatusCode != http.StatusOK || n == 0 {
		t.Errorf("%d, %d bytes, %v", resp.StatusCode, n, err)
	}
	refused(t, w.read(readBody(t, asSamples, of("m"))), 500, "page 9")
}

func TestFramesStaySmall(t *testing.T) {
	var ps []point
	for i := range 20_000 {
		ps = append(ps, point{t: int64(i) * 1000, f: math.Sqrt(float64(i)), st: 1})
	}
	w := newWorld(t, func(o *prom.Options) {
		fakeStore(listed(labels.FromStrings("__name__", "m", "a", strings.Repeat("x", 100)), ps...))(o)
		o.MaxReadFrameBytes = 4000
	})
	fs := decodeChunks(t, w.read(readBody(t, asChunks, of("m"))))
	n := 0
	for i, f := range fs {
		if size := f.Size(); size > 4000+1500 || size < 3000 && i < len(fs)-1 {
			t.Errorf("frame %d has %d bytes", i, size)
		}
		n += len(shownChunks(t, f.ChunkedSeries[0].Chunks))
	}
	if n != len(ps) {
		t.Errorf("%d samples", n)
	}
}

func TestReadWaitsForItsTurn(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(o *prom.Options) {
		o.Slots, o.Limits.MaxWait = api.NewSlots(1), time.Millisecond
		inner := o.Queryable
		o.Queryable = func(tenant string, q *model.Quota, c *model.Cost) storage.Queryable {
			if tenant == "slow" {
				close(entered)
				<-release
			}
			return inner(tenant, q, c)
		}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		decodeSamples(t, w.read(readBody(t, asSamples, of("up")), "X-Scope-OrgID: slow"))
	}()
	<-entered
	r := w.read(readBody(t, asSamples, of("up")))
	refused(t, r, 503, "query.max-concurrent")
	if r.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	refused(t, w.Get("/federate?match[]=up"), 503, "query.max-concurrent")
	for _, path := range []string{"query_exemplars?query=up", "metadata", "status/tsdb", "format_query?query=1", "parse_query?query=1"} {
		expect(t, w.Get("/api/v1/"+path), 503, "unavailable", "query.max-concurrent")
	}
	close(release)
	<-done
}
