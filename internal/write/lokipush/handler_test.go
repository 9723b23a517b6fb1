package lokipush

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/logs/logstest"
)

const now = logstest.Now

func newHandler(s *logstest.Store, l write.Limits, change func(*logs.Rules)) *Handler {
	p := write.New(write.Options{Seed: logstest.Seed, Head: s, Journal: s, Limits: l, Now: func() int64 { return now }})
	rules := logs.DefaultRules()
	if change != nil {
		change(&rules)
	}
	return New(Options{Sink: p, Rules: rules})
}

func compress(t testing.TB, encoding string, b []byte) []byte {
	var out bytes.Buffer
	var err error
	switch encoding {
	case "":
		return b
	case "snappy":
		return snappy.Encode(nil, b)
	case "gzip":
		z := gzip.NewWriter(&out)
		_, err = z.Write(b)
		z.Close()
	case "deflate":
		z, _ := flate.NewWriter(&out, 6)
		_, err = z.Write(b)
		z.Close()
	case "zlib":
		z := zlib.NewWriter(&out)
		_, err = z.Write(b)
		z.Close()
	case "zstd":
		z, _ := zstd.NewWriter(nil)
		defer z.Close()
		return z.EncodeAll(b, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The same streams give the same rows in each form and encoding.
func TestForms(t *testing.T) {
	lines := []entry{
		{now, "level=error msg=\"x\\ty\"", nil},
		{now, "second at the same time é\x00", []string{"trace_id", "1", "http.path", "/a"}},
		{now - 1, `{"a":1,"severity":"WARN"}`, []string{"a", "", "b", "2"}},
		{now + 5, "", nil},
	}
	one := []pushed{{`{job="j", app="a"}`, lines}, {`{app="b"}`, nil}, {`{app="b"}`, lines[3:]}, {`{app="b"}`, lines[:1]}}
	asJSON := []pushed{{`{"job":"j","app":"a"}`, lines}, {`{"app":"b"}`, nil}, {`{"app":"b"}`, lines[3:]}, {`{"app":"b"}`, lines[:1]}}
	want := []string{
		`{app="a", job="j", service_name="a"} 0 "level=error msg=\"x\\ty\"" {detected_level="error"}`,
		`{app="a", job="j", service_name="a"} 0 "second at the same time é\x00" {detected_level="unknown", http_path="/a", trace_id="1"}`,
		`{app="a", job="j", service_name="a"} -1 "{\"a\":1,\"severity\":\"WARN\"}" {b="2", detected_level="warn"}`,
		`{app="a", job="j", service_name="a"} 5 "" {detected_level="unknown"}`,
		`{app="b", service_name="b"} 5 "" {detected_level="unknown"}`,
		`{app="b", service_name="b"} 0 "level=error msg=\"x\\ty\"" {detected_level="error"}`,
	}
	legacyWant := slices.Clone(want)
	legacyWant[1] = strings.Replace(want[1], `, http_path="/a", trace_id="1"`, "", 1)
	legacyWant[2] = strings.Replace(want[2], `b="2", `, "", 1)
	s := &logstest.Store{}
	h := newHandler(s, write.Limits{MaxFuture: time.Hour}, nil)
	for _, c := range []struct {
		name, path, contentType, encoding string
		body                              []byte
		want                              []string
	}{
		{"protobuf", Path, "", "", compress(t, "snappy", protobufOf(one...)), want},
		{"protobuf, all said", Path, "application/x-protobuf", "snappy", compress(t, "snappy", protobufOf(one...)), want},
		{"protobuf, gzip of snappy", Path, "application/x-protobuf", "gzip", compress(t, "gzip", compress(t, "snappy", protobufOf(one...))), want},
		{"protobuf, gzip", Path, "application/x-protobuf", "gzip", compress(t, "gzip", protobufOf(one...)), want},
		{"protobuf, zstd", Path, "application/x-protobuf", "zstd", compress(t, "zstd", protobufOf(one...)), want},
		{"protobuf, legacy path", LegacyPath, "application/x-protobuf", "", compress(t, "snappy", protobufOf(one...)), want},
		{"JSON", Path, "application/json", "", jsonOf(asJSON...), want},
		{"JSON, charset", Path, "application/json; charset=utf-8", "", jsonOf(asJSON...), want},
		{"JSON, gzip", Path, "application/json", "gzip", compress(t, "gzip", jsonOf(asJSON...)), want},
		{"JSON, deflate", Path, "application/json", "deflate", compress(t, "deflate", jsonOf(asJSON...)), want},
		{"JSON, zlib", Path, "application/json", "deflate", compress(t, "zlib", jsonOf(asJSON...)), want},
		{"JSON, zstd", Path, "application/json", "zstd", compress(t, "zstd", jsonOf(asJSON...)), want},
		{"JSON, snappy", Path, "application/json", "snappy", compress(t, "snappy", jsonOf(asJSON...)), want},
		{"legacy JSON", LegacyPath, "application/json", "", legacyOf(one...), legacyWant},
		{"legacy JSON at the other path", Path, "application/json", "", legacyOf(one...), legacyWant},
		{"JSON at the legacy path", LegacyPath, "application/json", "", jsonOf(asJSON...), want},
	} {
		for range 2 { // first a cache miss, then a hit
			w := logstest.Post(h, c.path, c.body, "Content-Type", c.contentType, "Content-Encoding", c.encoding)
			if w.Code != http.StatusNoContent || w.Body.Len() > 0 {
				t.Fatalf("%s: %d %s", c.name, w.Code, w.Body)
			}
			if diff := cmp.Diff(c.want, s.Take()); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
		}
	}
}
