package lokipush

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/golang/snappy"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/logs/logstest"
	"github.com/shaledb/shale/internal/write/writetest"
)

// lineKinds are formats of lines that programs write.
func lineKinds() map[string]func(r *rand.Rand) string {
	words := []string{"connection", "from", "block", "received", "request", "to", "user", "timeout", "session", "server", "packet", "for", "terminating"}
	text := func(r *rand.Rand, n int) (s string) {
		for range n {
			s += " " + words[r.IntN(len(words))]
		}
		return s
	}
	return map[string]func(r *rand.Rand) string{
		"text": func(r *rand.Rand) string {
			return fmt.Sprintf("081109 2036%02d %d INFO dfs.DataNode$PacketResponder:%s blk_%d of size %d", r.IntN(60), r.IntN(1000), text(r, 6), r.Int64(), r.IntN(1<<26))
		},
		"plain": func(r *rand.Rand) string {
			return fmt.Sprintf("Jun 14 15:16:%02d combo sshd(pam_unix)[%d]:%s; logname uid %d tty NODEVssh rhost 218.188.2.%d", r.IntN(60), r.IntN(30000), text(r, 8), r.IntN(1000), r.IntN(256))
		},
		"logfmt": func(r *rand.Rand) string {
			return fmt.Sprintf(`ts=2026-03-01T00:00:%02d.%03dZ caller=metrics.go:%d component=querier level=info org_id=fake traceID=%016x latency=fast duration=%dms status=200 msg="%s"`, r.IntN(60), r.IntN(1000), r.IntN(300), r.Uint64(), r.IntN(5000), text(r, 3))
		},
		"json": func(r *rand.Rand) string {
			return fmt.Sprintf(`{"time":"2026-03-01T00:00:%02d.%03dZ","method":"GET","path":"/api/v1/%d","status":%d,"level":"info","duration":%d,"trace_id":"%016x","msg":"%s"}`, r.IntN(60), r.IntN(1000), r.IntN(10000), 200+r.IntN(5), r.IntN(100000), r.Uint64(), text(r, 4))
		},
		"access": func(r *rand.Rand) string {
			return fmt.Sprintf(`10.1.%d.%d - - [01/Mar/2026:00:00:%02d +0000] "GET /api/v1/items/%d?page=%d HTTP/1.1" 200 %d "-" "Mozilla/5.0 (X11; Linux x86_64)" %d`, r.IntN(256), r.IntN(256), r.IntN(60), r.IntN(100000), r.IntN(10), r.IntN(20000), r.IntN(1000))
		},
	}
}

// corpus makes a push of about a megabyte of lines in 50 streams, and returns how many bytes and lines
// it has.
func corpus(kind string, asJSON bool, metadata bool) (streams []pushed, lines, size int) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := lineKinds()
	names := []string{"text", "plain", "logfmt", "json", "access"}
	for i := range 50 {
		s := pushed{labels: fmt.Sprintf(`{app="app-%d", cluster="eu-west-1", namespace="prod", pod="app-%d-%08x"}`, i%10, i, r.Uint32())}
		if asJSON {
			s.labels = fmt.Sprintf(`{"app":"app-%d", "cluster":"eu-west-1", "namespace":"prod", "pod":"app-%d-%08x"}`, i%10, i, r.Uint32())
		}
		for j := range 130 {
			k := kind
			if k == "mixed" {
				k = names[i%len(names)]
			}
			e := entry{at: now - int64(j), line: kinds[k](r)}
			if metadata {
				e.metadata = []string{"pod_template_hash", "6b8f7d9c4", "trace_id", fmt.Sprintf("%016x", r.Uint64())}
			}
			size += len(e.line)
			lines++
			s.entries = append(s.entries, e)
		}
		streams = append(streams, s)
	}
	return streams, lines, size
}

// requester posts one body repeatedly.
type requester struct {
	h      http.Handler
	r      *http.Request
	body   []byte
	reader bytes.Reader
	w      httptest.ResponseRecorder
}

func newRequester(body []byte, contentType string) *requester {
	rules := logs.DefaultRules()
	h := New(Options{Rules: rules, Sink: write.New(write.Options{Seed: logstest.Seed, Head: writetest.Known{}, Journal: writetest.Known{}, Now: func() int64 { return now }, Limits: write.Limits{MaxFuture: time.Hour}})})
	q := &requester{h: h, body: body, r: httptest.NewRequest(http.MethodPost, Path, nil)}
	q.r.Header.Set("Content-Type", contentType)
	q.r.ContentLength = int64(len(body))
	return q
}

func (q *requester) post(tb testing.TB) {
	q.reader.Reset(q.body)
	q.r.Body = io.NopCloser(&q.reader)
	q.w = httptest.ResponseRecorder{Code: 200}
	q.h.ServeHTTP(&q.w, q.r)
	if q.w.Code != http.StatusNoContent {
		tb.Fatal(q.w.Code)
	}
}

func TestPushAllocatesNothingPerLine(t *testing.T) {
	alloctest.Counts(t)
	for _, metadata := range []bool{false, true} {
		streams, _, _ := corpus("mixed", false, metadata)
		q := newRequester(snappy.Encode(nil, protobufOf(streams...)), "application/x-protobuf")
		alloctest.AtMost(t, 25, 20, func() { q.post(t) })
		streams, _, _ = corpus("mixed", true, metadata)
		q = newRequester(jsonOf(streams...), "application/json")
		alloctest.AtMost(t, 25+3*50, 20, func() { q.post(t) })
	}
}

func BenchmarkPush(b *testing.B) {
	for _, kind := range []string{"mixed", "text", "plain", "logfmt", "json", "access"} {
		for _, form := range []string{"protobuf", "json"} {
			b.Run(kind+"/"+form, func(b *testing.B) {
				streams, lines, size := corpus(kind, form == "json", false)
				var q *requester
				if form == "json" {
					q = newRequester(jsonOf(streams...), "application/json")
				} else {
					q = newRequester(snappy.Encode(nil, protobufOf(streams...)), "")
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				began := alloctest.CPU(b)
				for b.Loop() {
					q.post(b)
				}
				used := float64(alloctest.CPU(b)-began) / float64(b.N)
				b.ReportMetric(used/float64(lines), "CPU-ns/line")
				b.ReportMetric(used/float64(size), "CPU-s/GB")
			})
		}
	}
}
