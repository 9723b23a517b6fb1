package otlp

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/logs/logstest"
	"github.com/shaledb/shale/internal/write/writetest"
)

func text(s string) []byte { return message(1, []byte(s)) }

// keyed is a KeyValue message.
func keyed(key string, value []byte) []byte {
	return append(message(1, []byte(key)), message(2, value)...)
}

// members is a map value.
func members(kvs ...[]byte) []byte {
	var all []byte
	for _, kv := range kvs {
		all = append(all, message(1, kv)...)
	}
	return message(6, all)
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// heavyLogs are bodies of logs that take much memory for their size.
func heavyLogs() map[string][]byte {
	name := "service.name"
	resource := message(1, message(1, keyed(name, text("s"))))
	records := func(r ...[]byte) []byte { return message(1, concat(resource, message(2, concat(r...)))) }
	record := func(fields ...[]byte) []byte { return message(2, concat(fields...)) }
	body := func(v []byte) []byte { return message(5, v) }
	attribute := func(kv []byte) []byte { return message(6, kv) }
	ok := records(record(body(text("x"))))
	empty := message(1, keyed("e", members()))
	long := strings.Repeat("k", 60_000)
	var resources []byte
	for i := range 50_000 {
		resources = append(resources, message(1, concat(message(1, message(1, keyed(name, text(fmt.Sprint(i))))), message(2, record())))...)
	}
	numbers := bytes.Repeat(message(1, []byte{0x20, 1}), 2)
	return map[string][]byte{
		"records":                        records(bytes.Repeat(record(), 1_000_000)),
		"long lines":                     records(bytes.Repeat(record(body(text(strings.Repeat("x", 200_000)))), 40)),
		"resources":                      resources,
		"maps as lines":                  records(bytes.Repeat(record(body(members(keyed("a", text("b")), keyed("c", text("d"))))), 100_000)),
		"a map of many members as line":  concat(records(record(body(message(6, bytes.Repeat(message(1, nil), 100_000))))), ok),
		"a list of many items as line":   concat(records(record(body(message(5, bytes.Repeat(message(1, nil), 200_000))))), ok),
		"bytes as line":                  concat(records(record(body(message(7, bytes.Repeat([]byte("x"), 4_000_000))))), ok),
		"maps of 60 KB as lines":         records(bytes.Repeat(record(body(message(6, bytes.Repeat(message(1, nil), 30_000)))), 20)),
		"attributes":                     concat(records(record(bytes.Repeat(attribute(keyed("a", text("b"))), 300_000))), ok),
		"attributes of 60 KB of members": concat(records(record(bytes.Repeat(attribute(keyed("a", message(5, bytes.Repeat(message(1, nil), 30_000)))), 20))), ok),
		"empty maps below a long name":   records(record(attribute(keyed(long, message(6, bytes.Repeat(empty, 1000)))))),
		"empty maps below a changed name": records(record(attribute(keyed(strings.ReplaceAll(long, "kk", "k.k"),
			message(6, bytes.Repeat(empty, 1000)))))),
		"empty maps below the name of a resource": concat(message(1, concat(message(1, message(1, keyed(long, message(6, bytes.Repeat(empty, 1000))))),
			message(2, record()))), ok),
		"empty maps below a label": concat(message(1, concat(message(1, message(1, keyed(name, message(6, message(1, keyed(long,
			message(6, bytes.Repeat(empty, 1000)))))))), message(2, record()))), ok),
		"a label of many members": concat(message(1, concat(message(1, message(1, keyed(name, message(5, bytes.Repeat(message(1, nil), 200_000))))),
			message(2, record()))), ok),
		"labels of many members": concat(message(1, concat(message(1, message(1, keyed(name, message(6, bytes.Repeat(message(1, keyed("a", numbers)), 50_000))))),
			message(2, record()))), ok),
		"nested maps": records(record(attribute(keyed("a", nested(60, 1000))))),
	}
}

// nested is a map of so many levels, with names of so many bytes.
func nested(levels, size int) []byte {
	v := text("x")
	for range levels {
		v = members(keyed(strings.Repeat("n", size), v))
	}
	return v
}

// heavyMetrics are bodies of metrics that take much memory for their size.
func heavyMetrics() map[string][]byte {
	fixed := func(number protowire.Number, v uint64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(nil, number, protowire.Fixed64Type), v)
	}
	point := concat(fixed(3, uint64(now)), fixed(4, 0))
	metric := func(name string, data []byte) []byte { return message(2, concat(message(1, []byte(name)), data)) }
	scope := func(metrics []byte, more ...[]byte) []byte {
		return message(1, concat(concat(more...), message(2, metrics)))
	}
	attribute := message(7, keyed("a", text("b")))
	var metrics []byte
	for i := range 20_000 {
		metrics = append(metrics, metric(fmt.Sprintf("m%d", i), concat(message(2, []byte("help")), message(5, message(1, point))))...)
	}
	exemplar := message(5, concat(fixed(2, uint64(now)), fixed(3, 0)))
	histogram := concat(fixed(3, uint64(now)), message(6, make([]byte, 8*1000)), message(7, bounds(999)))
	exponential := concat(fixed(3, uint64(now)), fixed(4, 100), message(8, concat([]byte{0x08, 0}, message(2, bytes.Repeat([]byte{1}, 100)))))
	return map[string][]byte{
		"points":             scope(metric("m", message(5, bytes.Repeat(message(1, point), 30_000)))),
		"points with labels": scope(metric("m", message(5, bytes.Repeat(message(1, concat(point, bytes.Repeat(attribute, 10))), 10_000)))),
		"metrics":            scope(metrics),
		"exemplars":          scope(metric("m", message(7, concat(message(1, concat(point, bytes.Repeat(exemplar, 20_000))), []byte{0x10, 2})))),
		"buckets":            scope(metric("m", message(9, concat(bytes.Repeat(message(1, histogram), 20), []byte{0x10, 2})))),
		"native histograms":  scope(metric("m", message(10, concat(bytes.Repeat(message(1, exponential), 5000), []byte{0x10, 2})))),
		"a long name":        scope(metric(strings.Repeat("m", 100_000), message(9, concat(bytes.Repeat(message(1, histogram), 1), []byte{0x10, 2})))),
		"attributes of a resource": scope(metric("m", message(5, bytes.Repeat(message(1, point), 1000))),
			message(1, bytes.Repeat(message(1, keyed("a", text("b"))), 10_000))),
	}
}

func bounds(n int) (b []byte) {
	for i := range n {
		b = protowire.AppendFixed64(b, uint64(0x3ff0000000000000+i<<32))
	}
	return b
}

// TestMemoryIsReserved: a request has reserved what it holds, whatever is in its body.
func TestMemoryIsReserved(t *testing.T) {
	alloctest.Counts(t)
	m := writetest.NewMeter()
	h := New(Options{Rules: logs.DefaultRules(), ScopeLabels: true, StreamCacheBytes: 64 << 10, Sink: write.New(write.Options{
		Seed: logstest.Seed, Head: m, Journal: m, Registerer: m.Registry, Now: func() int64 { return now },
		Limits: write.Limits{MaxInflightBytes: 1 << 30, MaxFuture: time.Hour},
	})})
	// Prometheus's converter makes labels for each sample, and maps are sorted in memory of their own.
	garbage := map[string]int64{
		"logs: resources": 4, "logs: maps as lines": 4, "logs: maps of 60 KB as lines": 8,
		"metrics: a long name": 4, "metrics: attributes of a resource": 32,
	}
	check := func(name string, to http.Handler, body []byte, headers ...string) {
		use := m.Of(func() {
			if w := post(to, body, headers...); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		})
		use.Check(t, name, max(garbage[name], writetest.Garbage))
	}
	for name, body := range heavyLogs() {
		check("logs: "+name, h.Logs(), body, "Content-Type", "application/x-protobuf")
	}
	for name, body := range heavyMetrics() {
		check("metrics: "+name, h.Metrics(), body, "Content-Type", "application/x-protobuf")
	}
}
