package graphite

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

// heavyLines are lines that take much memory for their size.
func heavyLines() map[string]string {
	var names, tags strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&names, "n%d 1 1\n", i)
	}
	for i := range 4000 {
		fmt.Fprintf(&tags, "n;t=%d;%s 1 1\n", i, strings.TrimSuffix(strings.Repeat("a=b;", 50), ";"))
	}
	return map[string]string{
		"short lines": strings.Repeat("a 1 1\n", 1_000_000),
		"names":       names.String(),
		"tags":        tags.String(),
		"long names":  strings.Repeat(strings.Repeat("n", 4000)+" 1 1\n", 1000),
		"bad lines":   strings.Repeat("x\n", 1_000_000) + "a 1 1\n",
	}
}

func memoryPath(m *writetest.Meter) *write.Path {
	return write.New(write.Options{
		Seed: seed, Head: m, Journal: m, Registerer: m.Registry, Now: func() int64 { return testNow },
		Limits: write.Limits{MaxInflightBytes: 1 << 30, MaxFuture: time.Hour},
	})
}

// TestMemoryOfHTTPIsReserved: a request has reserved what it holds, whatever is in its body.
func TestMemoryOfHTTPIsReserved(t *testing.T) {
	alloctest.Counts(t)
	for name, body := range heavyLines() {
		m := writetest.NewMeter()
		h := NewHTTP(memoryPath(m), nil, nil)
		use := m.Of(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, HTTPPath, strings.NewReader(body)))
			if w.Code != http.StatusNoContent && w.Code != http.StatusBadRequest {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		})
		use.Check(t, name, 16) // rows of many batches, one after the other
	}
}

// TestMemoryOfPushesIsReserved: the push of a chunk that came over TCP has reserved what it holds, while
// nothing is read.
func TestMemoryOfPushesIsReserved(t *testing.T) {
	alloctest.Counts(t)
	for name, lines := range heavyLines() {
		m, text := writetest.NewMeter(), []byte(lines) // the memory of the client
		p := memoryPath(m)
		l, err := New(Options{Listen: "127.0.0.1:0", Sink: p, Registerer: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		q := newQueue(l, model.DefaultTenant, l.metrics.tcp, 0, 0)
		c := &conn{l: l, from: &sender{l: l, tenant: model.DefaultTenant}, queue: q, parser: l.newParser("", model.DefaultTenant)}
		use := m.Of(func() {
			for rest := text; len(rest) > 0; {
				next := beginOfChunk(rest)
				if !c.deliver(rest[:next]) {
					t.Fatal("the lines were not taken")
				}
				rest = rest[next:]
				q.ended = true
				q.run(t.Context())
			}
		})
		runtime.KeepAlive(text)
		use.Check(t, name, 16)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// beginOfChunk returns how many bytes of lines a chunk surely has room for.
func beginOfChunk(lines []byte) (n int) {
	for rows := 0; n < len(lines) && n < maxLabelBytes-maxLineBytes && rows < maxRows-1; rows++ {
		n += bytes.IndexByte(lines[n:], '\n') + 1
	}
	return n
}

// heavyPickles are pickles that take much memory for their size.
func heavyPickles() map[string]string {
	point := "(U\x01n(K\x01K\x01tt"
	long := "U\xff" + strings.Repeat("n", 255)
	return map[string]string{
		"points":                    "](" + strings.Repeat(point, 50_000) + "e.",
		"one long name, many times": "](" + "(" + long + "q\x00(K\x01K\x01tt" + strings.Repeat("(h\x00(K\x01K\x01tt", 50_000) + "e.",
		"points in lists":           "](" + strings.Repeat("](U\x01n](K\x01K\x01ee", 20_000) + "e.",
		"strings with escapes":      "](" + strings.Repeat("(S'"+strings.Repeat(`\x41`, 20)+"'\n(K\x01K\x01tt", 8000) + "e.",
	}
}

// TestMemoryOfConnectionsIsReserved: a connection has reserved what it holds, whatever comes over it.
func TestMemoryOfConnectionsIsReserved(t *testing.T) {
	alloctest.Counts(t)
	m := writetest.NewMeter()
	l, err := New(Options{
		Listen: "127.0.0.1:0", PickleListen: "127.0.0.1:0", ProtobufListen: "127.0.0.1:0", Sink: memoryPath(m),
		// Read buffers have a bound of their own.
		MaxBufferBytes: 64 << 10,
		Registerer:     prometheus.NewRegistry(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- l.Serve() }()
	check := func(what string, to net.Addr, text string) {
		sent := []byte(text) // the memory of the client
		use := m.Of(func() {
			nc, err := net.Dial("tcp", to.String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := nc.Write(sent); err != nil {
				t.Error(err)
			}
			_ = nc.(*net.TCPConn).CloseWrite()
			// The listener closes the connection when its rows are durable.
			if _, err := io.Copy(io.Discard, nc); err != nil {
				t.Error(err)
			}
		})
		runtime.KeepAlive(sent)
		// There are rows of many batches, one after the other. Reading goes on while memory is measured, and what
		// it leaves as garbage counts as alive: half of what is reserved on a busy machine.
		use.CheckTimes(t, what, 3, 64)
	}
	for name, lines := range heavyLines() {
		check("lines: "+name, l.Addr(), lines)
	}
	for name, pickle := range heavyPickles() {
		check("pickles: "+name, l.PickleAddr(), framed([]byte(pickle)))
	}
	for name, message := range heavyMessages() {
		check("protobuf: "+name, l.ProtobufAddr(), framed(message))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// heavyMessages are messages of carbon's protobuf protocol that take much memory for their size.
func heavyMessages() map[string][]byte {
	field := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	point := field(2, nil)
	var metrics []byte
	for i := range 100_000 {
		metrics = append(metrics, field(1, append(field(1, fmt.Appendf(nil, "n%d", i)), point...))...)
	}
	return map[string][]byte{
		"points":      field(1, append(field(1, []byte("n")), bytes.Repeat(point, 500_000)...)),
		"metrics":     metrics,
		"a long name": field(1, append(field(1, bytes.Repeat([]byte("n"), 4000)), bytes.Repeat(point, 20_000)...)),
	}
}
