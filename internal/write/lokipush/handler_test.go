package lokipush

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
)

var now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// store is a head that knows nothing and a journal that remembers lines.
type store struct {
	mu    sync.Mutex
	lines []string
	err   error
}

func (s *store) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	for i := range b.Keys {
		dst = append(dst, uint32(i))
	}
	return dst, nil
}

func (s *store) Append(_ context.Context, b *model.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if b.Signal != model.Logs || b.Samples.Len() > 0 {
		return fmt.Errorf("%w: not a batch of logs", model.ErrInvalid)
	}
	for i := range b.Keys {
		l := b.Labels.At(i)
		if b.Labels.Series[i] != uint32(i) || l.Check() != nil || l.Key(9, model.Logs) != b.Keys[i] {
			return fmt.Errorf("%w: labels %s", model.ErrInvalid, l)
		}
		for r := b.Text.Begin(i); r < b.Text.End(i); r++ {
			line, err := model.ParseLine(b.Text.Blob(int(r)))
			if err != nil {
				return err
			}
			s.lines = append(s.lines, fmt.Sprintf("%s %d %q %s", l, b.Text.Times[r]-now, line.Text, line.Metadata))
		}
	}
	return nil
}

func (s *store) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines
	s.lines = nil
	return l
}

func newHandler(s *store, l write.Limits, change func(*logs.Rules)) *Handler {
	p := write.New(write.Options{Seed: 9, Head: s, Journal: s, Limits: l, Now: func() int64 { return now }})
	rules := logs.DefaultRules()
	if change != nil {
		change(&rules)
	}
	return New(Options{Sink: p, Rules: rules})
}

func post(h http.Handler, path string, body []byte, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
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

// The same streams in each form and encoding come to the same rows.
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
	s := &store{}
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
		for range 2 { // once unknown, once known to the caches
			w := post(h, c.path, c.body, "Content-Type", c.contentType, "Content-Encoding", c.encoding)
			if w.Code != http.StatusNoContent || w.Body.Len() > 0 {
				t.Fatalf("%s: %d %s", c.name, w.Code, w.Body)
			}
			if diff := cmp.Diff(c.want, s.take()); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
		}
	}
}
