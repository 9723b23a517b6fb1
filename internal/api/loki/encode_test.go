package loki

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// unsent is a response whose header has been sent and whose body is discarded.
func unsent() *api.Body {
	b := api.NewBody(httptest.NewRecorder(), httptest.NewRequest("HEAD", "/", nil))
	b.Buf, b.Status = make([]byte, 0, 1<<20), 200
	return b
}

func noFigures() *figures { return &figures{Stats: new(logql.Stats), cost: new(model.Cost)} }

func drawLabels(t *rapid.T) (model.Labels, map[string]string) {
	m := map[string]string{}
	var pairs []string
	for range rapid.IntRange(0, 3).Draw(t, "labels") {
		name := rapid.StringMatching(`[a-c_]{1,2}`).Draw(t, "name")
		if value := rapid.String().Draw(t, "value"); value != "" && m[name] == "" {
			m[name] = value
			pairs = append(pairs, name, value)
		}
	}
	return model.LabelsOf(pairs...), m
}

// A JSON decoder reads back what was written. Bytes that are not UTF-8 become the replacement character, as
// with package encoding/json.
func TestLinesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type stream struct {
			Stream map[string]string   `json:"stream"`
			Values [][]json.RawMessage `json:"values"`
		}
		flags := []string(nil)
		if rapid.Bool().Draw(t, "categorize") {
			flags = []string{categorizeLabels}
		}
		if rapid.Bool().Draw(t, "base64") {
			flags = append(flags, base64Lines)
		}
		var streams []logql.Stream
		want := []stream{}
		raw := func(v any) json.RawMessage {
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			if err := e.Encode(v); err != nil {
				t.Fatal(err)
			}
			return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "streams") {
			l, m := drawLabels(t)
			s, w := logql.Stream{Labels: l}, stream{Stream: m, Values: [][]json.RawMessage{}}
			for range rapid.IntRange(0, 3).Draw(t, "entries") {
				e := logql.Entry{Time: rapid.Int64().Draw(t, "time"), Line: rapid.SliceOf(rapid.Byte()).Draw(t, "line")}
				own, categories := map[string]any{}, [2]map[string]string{}
				e.Metadata, categories[0] = drawLabels(t)
				e.Parsed, categories[1] = drawLabels(t)
				for i, name := range []string{"structuredMetadata", "parsed"} {
					if len(categories[i]) > 0 && categorizes(flags) {
						own[name] = categories[i]
					}
				}
				if slices.Contains(flags, base64Lines) && !utf8.Valid(e.Line) {
					own["base64"] = e.Line
				}
				v := []json.RawMessage{raw(strconv.FormatInt(e.Time, 10)), raw(string(e.Line))}
				if categorizes(flags) || len(own) > 0 {
					v = append(v, raw(own))
				}
				s.Entries, w.Values = append(s.Entries, e), append(w.Values, v)
			}
			streams, want = append(streams, s), append(want, w)
		}
		r := httptest.NewRecorder()
		b := api.NewBody(r, httptest.NewRequest("GET", "/", nil))
		writeLines(b, streams, flags, noFigures())
		b.Flush(200, true)
		var got struct {
			Status string
			Data   struct {
				ResultType    string
				EncodingFlags []string
				Result        []stream
			}
		}
		if err := json.Unmarshal(r.Body.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, r.Body)
		}
		if got.Status != "success" || got.Data.ResultType != "streams" || !cmp.Equal(got.Data.EncodingFlags, flags) {
			t.Fatalf("%s", r.Body)
		}
		decoded := cmp.Transformer("json", func(m json.RawMessage) (v any) {
			if err := json.Unmarshal(m, &v); err != nil {
				t.Fatal(err)
			}
			return v
		})
		if d := cmp.Diff(want, got.Data.Result, decoded); d != "" {
			t.Fatal(d)
		}
	})
}

// Encoding a line allocates nothing.
func TestEncodeAllocations(t *testing.T) {
	s := logql.Stream{Labels: model.LabelsOf("app", "a", "host", "h")}
	for i := range 2000 {
		s.Entries = append(s.Entries, logql.Entry{
			Time: int64(i) * 1e9, Line: []byte(`level=info msg="a line of usual length, with quotes"`),
			Metadata: model.LabelsOf("trace_id", "0123456789abcdef"),
		})
	}
	streams := []logql.Stream{s}
	b, f, flags := unsent(), noFigures(), []string{categorizeLabels}
	alloctest.AtMost(t, 3, 1, func() { b.Buf = b.Buf[:0]; writeLines(b, streams, flags, f) })
}

// BenchmarkLines encodes 1,000 lines of 150 bytes with structured metadata, as Grafana asks for them.
func BenchmarkLines(b *testing.B) {
	s := logql.Stream{Labels: model.LabelsOf("app", "a", "host", "h")}
	line := []byte(`level=info ts=2026-11-21T18:55:20.000Z caller=handler.go:57 msg="request served" path="/api/v1/orders/4711" status=200 duration=12.5ms bytes=18274`)
	for i := range 1000 {
		s.Entries = append(s.Entries, logql.Entry{Time: int64(i) * 1e9, Line: line, Metadata: model.LabelsOf("trace_id", "0123456789abcdef")})
	}
	streams := []logql.Stream{s}
	out, f, flags := unsent(), noFigures(), []string{categorizeLabels}
	b.SetBytes(int64(len(line) * len(s.Entries)))
	b.ReportAllocs()
	for b.Loop() {
		out.Buf = out.Buf[:0]
		writeLines(out, streams, flags, f)
	}
}
