package otlp

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/logs/logstest"
)

const now = logstest.Now

// store is the head and journal of the tests. It may also keep metadata.
type store interface {
	write.Head
	write.Journal
}

func newHandler(s store, l write.Limits) *Handler {
	metadata, _ := s.(write.Metadata)
	p := write.New(write.Options{Seed: logstest.Seed, Head: s, Journal: s, Metadata: metadata, Limits: l, Now: func() int64 { return now }})
	return New(Options{Sink: p, Rules: logs.DefaultRules()})
}

func post(h http.Handler, body []byte, headers ...string) *httptest.ResponseRecorder {
	return logstest.Post(h, "/", body, headers...)
}

// sampleLogs has everything that a log record can have.
func sampleLogs() plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	a := rl.Resource().Attributes()
	a.PutStr("service.name", "shop")
	a.PutStr("k8s.pod.name", "shop-1")
	a.PutStr("host.name", "h1")
	a.PutInt("process.pid", 7)
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("lib")
	sl.Scope().SetVersion("1.2")
	sl.Scope().SetDroppedAttributesCount(3)
	sl.Scope().Attributes().PutStr("host.name", "of the scope")
	r := sl.LogRecords().AppendEmpty()
	r.SetTimestamp(pcommon.Timestamp(now))
	r.SetObservedTimestamp(pcommon.Timestamp(now + 5))
	r.SetSeverityNumber(plog.SeverityNumberWarn2)
	r.SetFlags(plog.DefaultLogRecordFlags.WithIsSampled(true))
	r.SetDroppedAttributesCount(2)
	r.SetTraceID([16]byte{1, 2})
	r.SetSpanID([8]byte{3})
	r.SetEventName("checkout")
	r.Body().SetStr("hello")
	r.Attributes().PutStr("event_name", "loses")
	r.Attributes().PutDouble("http.duration", 1e-7)
	r.Attributes().PutBool("ok", true)
	r.Attributes().PutEmptyBytes("raw").FromRaw([]byte{0xff})
	m := r.Attributes().PutEmptyMap("http.request")
	m.PutStr("header.x", "y")
	m.PutEmptyMap("deep").PutInt("n", -1)
	l := r.Attributes().PutEmptySlice("list")
	l.AppendEmpty().SetStr("<a>")
	l.AppendEmpty().SetInt(1)
	r = sl.LogRecords().AppendEmpty()
	r.SetObservedTimestamp(pcommon.Timestamp(now + 6))
	r.SetSeverityText("FATAL")
	b := r.Body().SetEmptyMap()
	b.PutStr("z", "é\"\n\x01")
	b.PutStr("a", "x")
	b.PutEmpty("none")
	b.PutEmptySlice("l").AppendEmpty().SetDouble(2.5)
	r = sl.LogRecords().AppendEmpty()
	r.Body().SetStr("level=error")
	// Neither a resource nor a scope.
	r = ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	r.SetTimestamp(pcommon.Timestamp(now - 1))
	r.Body().SetInt(42)
	rl = ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("k8s.job.name", "j")
	rl.Resource().Attributes().PutStr("service.name", "")
	rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetTimestamp(pcommon.Timestamp(now))
	return ld
}

func TestLogs(t *testing.T) {
	const shop = `{k8s_pod_name="shop-1", service_name="shop"}`
	base := `host_name="of the scope", %sprocess_pid="7", %sscope_dropped_attributes_count="3", scope_name="lib", scope_version="1.2"%s}`
	want := []string{
		shop + ` 0 "hello" {detected_level="warn", dropped_attributes_count="2", event_name="checkout", flags="1", ` +
			fmt.Sprintf(base, `http_duration="1e-7", http_request_deep_n="-1", http_request_header_x="y", list="[\"<a>\",1]", observed_timestamp="1772323200000000005", ok="true", `,
				`raw="/w==", `, `, severity_number="14", span_id="0300000000000000", trace_id="01020000000000000000000000000000"`),
		shop + ` 6 "{\"a\":\"x\",\"l\":[2.5],\"none\":null,\"z\":\"é\\\"\\n\\u0001\"}" {detected_level="fatal", ` + fmt.Sprintf(base, "", "", `, severity_text="FATAL"`),
		shop + ` 0 "level=error" {detected_level="error", ` + fmt.Sprintf(base, "", "", ""),
		`{service_name="unknown_service"} -1 "42" {detected_level="unknown"}`,
		`{k8s_job_name="j", service_name="j"} 0 "" {detected_level="unknown"}`,
	}
	req := plogotlp.NewExportRequestFromLogs(sampleLogs())
	pb, err := req.MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	js, err := req.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	zs, _ := zstd.NewWriter(nil)
	s := &logstest.Store{}
	h := newHandler(s, write.Limits{MaxFuture: time.Hour}).Logs()
	for _, c := range []struct {
		name, contentType, encoding, answer string
		body                                []byte
	}{
		{"protobuf", "application/x-protobuf", "", "", pb},
		{"JSON", "application/json", "", "{}", js},
		{"gzip", "application/x-protobuf", "gzip", "", gzipped(pb)},
		{"zstd", "application/x-protobuf", "zstd", "", zs.EncodeAll(pb, nil)},
	} {
		for range 2 {
			w := post(h, c.body, "Content-Type", c.contentType, "Content-Encoding", c.encoding)
			if w.Code != http.StatusOK || w.Body.String() != c.answer || w.Header().Get("Content-Type") != c.contentType {
				t.Fatalf("%s: %d %q %v", c.name, w.Code, w.Body, w.Header())
			}
			if diff := cmp.Diff(want, s.Take()); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
		}
	}
}

func TestLogAnswers(t *testing.T) {
	ld := plog.NewLogs()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	records.AppendEmpty().SetTimestamp(pcommon.Timestamp(now))
	records.AppendEmpty().SetTimestamp(pcommon.Timestamp(now - 2*int64(time.Hour)))
	records.AppendEmpty().SetTimestamp(math.MaxUint64)
	some, _ := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	records.RemoveIf(func(r plog.LogRecord) bool { return r.Timestamp() == pcommon.Timestamp(now) })
	none, _ := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	noneJSON, _ := plogotlp.NewExportRequestFromLogs(ld).MarshalJSON()

	s := &logstest.Store{}
	h := newHandler(s, write.Limits{MaxFuture: time.Hour, MaxAge: time.Hour}).Logs()
	w := post(h, some, "Content-Type", "application/x-protobuf")
	resp := plogotlp.NewExportResponse()
	if err := resp.UnmarshalProto(w.Body.Bytes()); err != nil || w.Code != http.StatusOK || resp.PartialSuccess().RejectedLogRecords() != 2 ||
		!strings.Contains(resp.PartialSuccess().ErrorMessage(), "has timestamp too old: 2026-02-28T22:00:00Z") {
		t.Errorf("%d %q %v", w.Code, w.Body, err)
	}
	if rows := s.Take(); len(rows) != 1 {
		t.Errorf("stored %v", rows)
	}
	// The rule is the same when no line is left.
	w = post(h, none, "Content-Type", "application/x-protobuf")
	resp = plogotlp.NewExportResponse()
	if err := resp.UnmarshalProto(w.Body.Bytes()); err != nil || w.Code != http.StatusOK || resp.PartialSuccess().RejectedLogRecords() != 2 ||
		!strings.Contains(resp.PartialSuccess().ErrorMessage(), "1 errors like") {
		t.Errorf("%d %q %v", w.Code, w.Body, err)
	}
	w = post(h, noneJSON, "Content-Type", "application/json")
	resp = plogotlp.NewExportResponse()
	if err := resp.UnmarshalJSON(w.Body.Bytes()); err != nil || w.Code != http.StatusOK || resp.PartialSuccess().RejectedLogRecords() != 2 {
		t.Errorf("%d %q %v", w.Code, w.Body, err)
	}
	if rows := s.Take(); len(rows) != 0 {
		t.Errorf("stored %v", rows)
	}
	s.Fail(model.ErrTransient)
	w = post(h, some, "Content-Type", "application/x-protobuf")
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	for _, c := range []struct {
		status  int
		body    string
		headers []string
	}{
		{http.StatusUnsupportedMediaType, "", []string{"Content-Type", "text/plain"}},
		{http.StatusUnsupportedMediaType, "", nil},
		{http.StatusUnsupportedMediaType, "", []string{"Content-Type", "application/json", "Content-Encoding", "br"}},
		{http.StatusBadRequest, "\x0a\x05", []string{"Content-Type", "application/x-protobuf"}},
		{http.StatusBadRequest, "{", []string{"Content-Type", "application/json"}},
		{http.StatusBadRequest, strings.Repeat("[", 1<<20), []string{"Content-Type", "application/json"}},
		{http.StatusBadRequest, "x", []string{"Content-Type", "application/json", "Content-Encoding", "gzip"}},
		{http.StatusBadRequest, "x", []string{"Content-Type", "application/json", "X-Scope-OrgID", "a/b"}},
		{http.StatusOK, "", []string{"Content-Type", "application/x-protobuf"}},
		{http.StatusOK, "{}", []string{"Content-Type", "application/json"}},
	} {
		if w := post(h, []byte(c.body), c.headers...); w.Code != c.status || c.status != http.StatusOK && w.Body.Len() == 0 {
			t.Errorf("%.10q %v: %d %q", c.body, c.headers, w.Code, w.Body)
		}
	}
}

// TestMapsAsAttributes: members of maps get the names above them, whether or not maps without members come
// first.
func TestMapsAsAttributes(t *testing.T) {
	none := keyed("none", members(keyed("also", members())))
	long := strings.Repeat("k", logs.MostBytes)
	for _, c := range []struct {
		attribute []byte
		want      string
	}{
		{keyed("a", members(none, keyed("b", text("x")), none, keyed("c.d", members(none, keyed("e", text("y")))))), `a_b="x", a_c_d_e="y", `},
		{keyed("a", members(none)), ``},
		{keyed("", members(none, keyed("b", text("x")))), `structured metadata with an invalid name ''`},
		{keyed("", members(none)), ``},
		{keyed(long, members(none, keyed("b", text("x")))), `structured metadata too large: '131074' bytes`},
		{keyed(long, members(none)), ``},
		{keyed(long, members(keyed("a", members(none, keyed("b", text("x")))))), `structured metadata too large: '131074' bytes`},
	} {
		s := &logstest.Store{}
		h := newHandler(s, write.Limits{MaxFuture: time.Hour}).Logs()
		w := post(h, message(1, message(2, message(2, message(6, c.attribute)))), "Content-Type", "application/x-protobuf")
		want := []string{`{service_name="unknown_service"} 0 "" {` + c.want + `detected_level="unknown"}`}
		if strings.HasPrefix(c.want, "structured") {
			if got := s.Take(); len(got) > 0 || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%.60q: %v %q", c.attribute, got, w.Body)
			}
		} else if diff := cmp.Diff(want, s.Take()); diff != "" {
			t.Errorf("%.60q: %s %q", c.attribute, diff, w.Body)
		}
	}
}
