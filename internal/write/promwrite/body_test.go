package promwrite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

// firstStep is what is reserved for a body before the first of its bytes has come.
const firstStep = 16 << 10

func TestHostileBodies(t *testing.T) {
	h, s := newHandler(t, testLimits())
	for what, c := range hostileSnappy(t) {
		for _, more := range [][]string{nil, {"Content-Type", typeV2}} {
			w := send(h, c.body, more...)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.text) && more == nil {
				t.Errorf("%s: %d %s", what, w.Code, w.Body)
			}
		}
	}
	if len(s.Rows) != 0 {
		t.Errorf("stored %v", s.Rows)
	}
}

// TestHints: a body that is not what its headers say gets a hint.
func TestHints(t *testing.T) {
	h, _ := newHandler(t, testLimits())
	plain, err := snappy.Decode(nil, encode(t, fleet(2)))
	if err != nil {
		t.Fatal(err)
	}
	for text, c := range map[string]struct {
		body    []byte
		headers []string
	}{
		"the body looks like JSON; expected protobuf in a snappy block":                                  {[]byte(`{"a":1}`), nil},
		"the body looks like protobuf that is not compressed: send it as a snappy block":                 {plain, nil},
		"the body looks like gzip; expected snappy, zstd":                                                {[]byte("\x1f\x8b\x08"), nil},
		"the body looks like zstd: send it with Content-Encoding: zstd":                                  {[]byte("\x28\xb5\x2f\xfd\x00"), []string{"Content-Encoding", "snappy"}},
		`Content-Type "application/json" is not supported; expected Content-Type application/x-protobuf`: {[]byte(`{}`), []string{"Content-Type", "application/json"}},
	} {
		if w := send(h, c.body, c.headers...); !strings.Contains(w.Body.String(), text) {
			t.Errorf("%d %s, want %s", w.Code, w.Body, text)
		}
	}
}

func hostileSnappy(t *testing.T) map[string]hostileBody {
	bomb := binary.AppendUvarint(nil, 1<<40)
	return map[string]hostileBody{
		"empty":               {nil, 400, "snappy"},
		"not snappy":          {[]byte("hello, world"), 400, "snappy"},
		"declares 1 TiB":      {bomb, 400, "snappy"}, // more than a block can have
		"declares 4 GiB - 1":  {binary.AppendUvarint(nil, 1<<32-1), 413, "limits.decoded-bytes"},
		"declares 5 MiB":      {binary.AppendUvarint(nil, 5<<20), 413, "limits.decoded-bytes"},
		"declares too little": {append(binary.AppendUvarint(nil, 3), snappy.Encode(nil, []byte("hello, world"))[1:]...), 400, "snappy"},
		"cut off":             {encode(t, fleet(20))[:2000], 400, "snappy"},
		"not protobuf":        {snappy.Encode(nil, []byte("hello, world")), 400, "at byte 3 of the decoded"},
		"too large":           {make([]byte, 1<<20+1), 413, "limits.body-bytes"},
		"no series":           {snappy.Encode(nil, nil), 204, ""},
	}
}

// post sends a body of any reader, as announced.
func post(h http.Handler, body io.Reader, announced int64) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, Path, io.NopCloser(body))
	r.ContentLength = announced
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestUnknownLength sends bodies in chunks, which are admitted as they arrive.
func TestUnknownLength(t *testing.T) {
	h, s := newHandler(t, testLimits())
	if w := post(h, bytes.NewReader(encode(t, fleet(3000))), -1); w.Code != 204 || len(s.Rows) != 3000 {
		t.Fatalf("%d %s, %d series", w.Code, w.Body, len(s.Rows))
	}
	for _, n := range []int{0, 1, firstStep - 1, firstStep, firstStep + 1, 4 * firstStep, 1 << 20} {
		if w := post(h, bytes.NewReader(make([]byte, n)), -1); w.Code >= 413 {
			t.Errorf("%d bytes: %d %s", n, w.Code, w.Body)
		}
	}
	if w := post(h, io.LimitReader(zeros{}, 1<<20+1), -1); w.Code != 413 || !strings.Contains(w.Body.String(), "1048577 bytes and 1048576 are allowed") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := post(h, io.MultiReader(strings.NewReader("x"), broken{}), -1); w.Code != 400 || !strings.Contains(w.Body.String(), "after 1 byte:") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := post(h, io.MultiReader(bytes.NewReader(make([]byte, 20_000)), broken{}), 50_000); w.Code != 400 || !strings.Contains(w.Body.String(), "read 20000 of 50000 bytes") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// TestAdmissionComesBeforeReading fills the budget and sends a body that fails the test if it is read.
func TestAdmissionComesBeforeReading(t *testing.T) {
	limits := testLimits()
	limits.MaxInflightBytes = 1 << 20
	s := writetest.NewStore(seed)
	path := newPath(s, limits)
	h := New(path, nil)
	held, err := path.Admit(t.Context(), "other", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	refused := func() {
		t.Helper()
		for _, announced := range []int64{-1, 1000, 500_000} {
			w := post(h, unread{t}, announced)
			seconds, err := strconv.Atoi(w.Header().Get("Retry-After"))
			if w.Code != 503 || err != nil || seconds < 1 || !strings.Contains(w.Body.String(), "limits.inflight-bytes") {
				t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
			}
		}
	}
	refused()
	held.Release()
	// There is room for the first step but not for the announced size: the request is refused at once.
	if held, err = path.Admit(t.Context(), "other", 1<<20-2*firstStep); err != nil {
		t.Fatal(err)
	}
	if w := post(h, unread{t}, 500_000); w.Code != 503 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	held.Release()
	if w := send(h, encode(t, fleet(10))); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if _, err := path.Admit(t.Context(), "other", 1<<20); err != nil {
		t.Fatalf("the request kept a part of the budget: %v", err)
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// TestSlowBodiesHoldLittle opens connections that each announce a large body and send a part of it.
// What they hold of the budget is proportional to what they have sent, so that others find room.
func TestSlowBodiesHoldLittle(t *testing.T) {
	const connections, announced, sent = 20, 1 << 20, 40_000
	limits := testLimits()
	limits.MaxInflightBytes = 4 << 20
	reg := prometheus.NewRegistry()
	s := writetest.NewStore(seed)
	h := New(write.New(write.Options{
		Seed: seed, Head: s, Journal: s, Limits: limits, Now: func() int64 { return nowMs * 1_000_000 }, Registerer: reg,
	}), nil)
	server := httptest.NewServer(h)
	defer server.Close()
	for range connections {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", Path, announced, make([]byte, sent)); err != nil {
			t.Fatal(err)
		}
	}
	// 40,000 bytes have needed the steps of 16 KiB, 16 KiB and 32 KiB.
	const each = 4 * firstStep
	deadline := time.Now().Add(30 * time.Second)
	for inflight(t, reg) < connections*each {
		if time.Now().After(deadline) {
			t.Fatalf("only %d bytes are in work", inflight(t, reg))
		}
		time.Sleep(time.Millisecond)
	}
	if n := inflight(t, reg); n != connections*each {
		t.Fatalf("%d connections hold %d bytes", connections, n)
	}
	if w := send(h, encode(t, fleet(100))); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// inflight returns the bytes that requests hold of the budget, by the metric.
func inflight(t *testing.T, reg *prometheus.Registry) int64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "shale_write_inflight_bytes" {
			return int64(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	t.Fatalf("no metric in %v", []*dto.MetricFamily(families))
	return 0
}

// TestColumnsAreAdmitted sends a body that needs far more memory than its size, with a budget of 3 MiB.
func TestColumnsAreAdmitted(t *testing.T) {
	limits := testLimits()
	limits.MaxInflightBytes = 3 << 20
	limits.MaxDecodedBytes = 64 << 20
	name, table := label("__name__", "m"), symbolsOf("", "__name__", "m")
	for what, c := range map[string]struct {
		contentType, raw string
	}{
		"samples of two bytes":      {"application/x-protobuf", msg(1, name, strings.Repeat(msg(2, ""), 900_000))},
		"histograms of two bytes":   {"application/x-protobuf", msg(1, name, strings.Repeat(msg(4, ""), 300_000))},
		"exemplars of two bytes":    {"application/x-protobuf", msg(1, name, strings.Repeat(msg(3, ""), 300_000))},
		"metadata of three bytes":   {"application/x-protobuf", strings.Repeat(msg(3, msg(2, "x")), 300_000)},
		"symbols of two bytes":      {typeV2, strings.Repeat(msg(4, ""), 900_000)},
		"series of few bytes":       {typeV2, table + strings.Repeat(msg(5, msg(1, packed(1, 2)), msg(2, "")), 200_000)},
		"labels of all new series":  {"application/x-protobuf", newSeries(1500)},
		"samples of version 2":      {typeV2, table + msg(5, msg(1, packed(1, 2)), strings.Repeat(msg(2, ""), 900_000))},
		"samples with start time":   {typeV2, table + msg(5, msg(1, packed(1, 2)), strings.Repeat(msg(2, num(3, 1)), 600_000))},
		"references in small parts": {typeV2, table + msg(5, strings.Repeat(num(1, 1), 1_400_000), msg(2, ""))},
	} {
		h, _ := newHandler(t, limits)
		w := send(h, snappy.Encode(nil, []byte(c.raw)), "Content-Type", c.contentType)
		if w.Code != 413 && w.Code != 503 || !strings.Contains(w.Body.String(), "limits.inflight-bytes") {
			t.Errorf("%s: %d %.200s", what, w.Code, w.Body)
		}
	}
}

// newSeries makes n series with labels of about 1 KiB each, twice the size of the body once they are
// stored.
func newSeries(n int) string {
	var sb strings.Builder
	for i := range n {
		sb.WriteString(msg(1, label("__name__", strings.Repeat("m", 1000)), label("i", strconv.Itoa(i)), msg(2, dbl(1, 1), num(2, nowMs))))
	}
	return sb.String()
}

// TestPushIsCutOffWhereMemoryEnds: memory for labels of new series is reserved as they are built, and
// the push ends when there is none left.
func TestPushIsCutOffWhereMemoryEnds(t *testing.T) {
	w, b := new(walker), new(model.Batch)
	raw := []byte(newSeries(1000))
	s := writetest.NewStore(seed)
	path := newPath(s, testLimits())
	reserved := int64(0)
	refused := &write.Refused{Status: http.StatusServiceUnavailable, Limit: "limits.inflight-bytes", Text: "full"}
	b.Tenant = "t"
	w.start(v1, raw, seed, testLimits(), b, func(n int64) error {
		if reserved += n; reserved > 800<<10 {
			return refused
		}
		return nil
	})
	if err := w.walk(); err != nil {
		t.Fatal(err)
	}
	if _, err := path.Push(t.Context(), b); !errors.Is(err, refused) || len(s.Rows) > 0 {
		t.Fatalf("%v, %d series stored", err, len(s.Rows))
	}
}
