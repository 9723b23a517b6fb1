//go:build e2e

package badinput

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// line makes an Entry message.
func line(at time.Time, text string, metadata ...string) []byte {
	ts := binary.AppendUvarint(tag(1, wireVarint), uint64(at.Unix()))
	ts = binary.AppendUvarint(append(ts, tag(2, wireVarint)...), uint64(at.Nanosecond()))
	b := append(field(1, ts), field(2, []byte(text))...)
	for i := 0; i+1 < len(metadata); i += 2 {
		b = append(b, field(3, append(field(1, []byte(metadata[i])), field(2, []byte(metadata[i+1]))...))...)
	}
	return field(2, b)
}

// stream makes a Stream message of labels and lines.
func stream(labels string, lines ...[]byte) []byte {
	return field(1, append(field(1, []byte(labels)), join(lines...)...))
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	z.Close()
	return out.Bytes()
}

// count repeats a text with each number below n.
func count(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func pushes() group {
	g := group{file: "loki-push", title: "Loki push, POST /loki/api/v1/push"}
	send := func(input string, lines int, path string, headers []string, body func() []byte) {
		g.attacks = append(g.attacks, attack{input: input, lines: lines, do: func(t *testing.T, s *server) (string, string) {
			status, _, text := s.send(path, body(), headers...)
			return fmt.Sprint(status), text
		}})
	}
	const path = "/loki/api/v1/push"
	raw := func(input string, headers []string, body func() []byte) { send(input, 0, path, headers, body) }
	pb := func(input string, lines int, parts func() []byte) {
		send(input, lines, path, nil, func() []byte { return s2.EncodeSnappy(nil, parts()) })
	}
	js := func(input string, lines int, text string) {
		send(input, lines, path, []string{"Content-Type", "application/json"}, func() []byte {
			return []byte(strings.ReplaceAll(text, "NOW", fmt.Sprint(time.Now().UnixNano())))
		})
	}
	now := time.Now
	// past is the time of lines that are not stored anyway. Error texts name lengths, and a fixed time encodes
	// to the same length in each run.
	past := func() time.Time { return time.Unix(1_700_000_000, 300_000_000) }
	fixed := func(b []byte) func() []byte { return func() []byte { return b } }
	app := `{app="bi"}`

	for _, method := range []string{"GET", "PUT", "DELETE"} {
		g.attacks = append(g.attacks, attack{input: method, do: func(t *testing.T, s *server) (string, string) {
			return s.exchange(strings.NewReader(method+" /loki/api/v1/push HTTP/1.1\r\nHost: shale\r\nConnection: close\r\n\r\n"), 20*time.Second)
		}})
	}
	raw("no body", nil, fixed(nil))
	raw("an empty snappy block", nil, fixed([]byte{0}))
	raw("text instead of snappy", nil, fixed([]byte("hello world")))
	raw("protobuf without snappy", nil, fixed(stream(app, line(past(), "x"))))
	raw("Content-Encoding br", []string{"Content-Encoding", "br"}, fixed(nil))
	raw("Content-Type that is not a media type", []string{"Content-Type", "a/b/c"}, fixed(nil))
	raw("Content-Encoding gzip, body not gzip", []string{"Content-Encoding", "gzip"}, fixed([]byte("x")))
	raw("gzip cut in the middle", []string{"Content-Encoding", "gzip"}, func() []byte { b := zipped(stream(app, line(past(), "x"))); return b[:len(b)-9] })
	raw("Content-Encoding deflate, body not deflate", []string{"Content-Encoding", "deflate"}, fixed([]byte("\xff\xff")))
	raw("Content-Encoding zstd, body not zstd", []string{"Content-Encoding", "zstd"}, fixed([]byte("x")))
	raw("100 MiB of zeros in gzip", []string{"Content-Encoding", "gzip", "Content-Type", "application/json"}, func() []byte { return zipped(make([]byte, 100<<20)) })
	raw("100 MiB of zeros in zstd", []string{"Content-Encoding", "zstd"}, func() []byte { z, _ := zstd.NewWriter(nil); return z.EncodeAll(make([]byte, 100<<20), nil) })
	raw("snappy that declares 4 GB", nil, fixed([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 'x'}))
	raw("a body over limits.body-bytes", nil, fixed(make([]byte, bodyMiB<<20+1)))
	raw("an invalid tenant", []string{"X-Scope-OrgID", "a|b"}, fixed(nil))

	// Protobuf.
	pb("garbage", 0, fixed([]byte("garbage, no protobuf")))
	pb("cut in the middle", 0, func() []byte { b := stream(app, line(past(), "x")); return b[:len(b)-2] })
	pb("a good stream, then a cut one", 0, func() []byte { b := stream(app, line(past(), "x")); return join(b, b[:len(b)-2]) })
	pb("a stream as a number", 0, fixed(append(tag(1, wireVarint), 5)))
	pb("a line as a number", 0, fixed(field(1, field(2, append(tag(2, wireVarint), 5)))))
	pb("a group", 0, fixed(tag(1, wireGroup)))
	pb("a length of 2^63", 0, fixed(append(tag(1, wireBytes), binary.AppendUvarint(nil, 1<<63)...)))
	pb("no labels", 1, func() []byte { return stream("", line(now(), "x")) })
	pb("empty labels", 1, func() []byte { return stream("{}", line(now(), "x")) })
	pb("labels that do not end", 1, func() []byte { return stream(`{app="bi"`, line(now(), "x")) })
	pb("a regular expression for labels", 1, func() []byte { return stream(`{app=~"bi"}`, line(now(), "x")) })
	pb("one label twice", 1, func() []byte { return stream(`{a="1", a="2"}`, line(now(), "x")) })
	pb("labels of invalid UTF-8", 1, func() []byte { return stream("{a=\"\xff\"}", line(now(), "x")) })
	pb("labels of NUL", 1, func() []byte { return stream("{a=\"\x00\"}", line(now(), "x")) })
	pb("100 labels", 1, func() []byte {
		var b []string
		for i := range 100 {
			b = append(b, fmt.Sprintf(`l%d="v"`, i))
		}
		return stream("{"+strings.Join(b, ",")+"}", line(now(), "x"))
	})
	pb("a label name of 2,000 bytes", 1, func() []byte { return stream("{"+strings.Repeat("n", 2000)+`="v"}`, line(now(), "x")) })
	pb("a label value of 5,000 bytes", 1, func() []byte { return stream(`{n="`+strings.Repeat("v", 5000)+`"}`, line(now(), "x")) })
	pb("labels of 3 MiB", 1, func() []byte { return stream(`{n="`+strings.Repeat("v", 3<<20)+`"}`, line(now(), "x")) })
	pb("labels of a million braces", 1, func() []byte { return stream(strings.Repeat("{", 1<<20), line(now(), "x")) })
	pb("good lines around an invalid stream", 3, func() []byte {
		return join(stream(app, line(now(), "1")), stream("nonsense{", line(now(), "2")), stream(app, line(now(), "3")))
	})
	pb("an empty line", 1, func() []byte { return stream(app, line(now(), "")) })
	pb("a line of NUL, invalid UTF-8 and newlines", 1, func() []byte { return stream(app, line(now(), "\x00\xff\n\r\xfe")) })
	pb("a line of 300 KiB and a good one", 2, func() []byte { return stream(app, line(now(), strings.Repeat("x", 300<<10)), line(now(), "x")) })
	pb("two days old", 1, func() []byte { return stream(app, line(now().Add(-48*time.Hour), "x")) })
	pb("an hour ahead", 1, func() []byte { return stream(app, line(now().Add(time.Hour), "x")) })
	pb("seconds of 2^62", 1, fixed(stream(app, field(2, field(1, binary.AppendUvarint(tag(1, wireVarint), 1<<62))))))
	pb("nanoseconds of 2^31", 1, fixed(stream(app, field(2, field(1, binary.AppendUvarint(tag(2, wireVarint), 1<<31))))))
	pb("no time", 1, fixed(stream(app, field(2, field(2, []byte("x"))))))
	pb("metadata without a name", 1, func() []byte { return stream(app, line(now(), "x", "", "v")) })
	pb("metadata of odd names", 1, func() []byte { return stream(app, line(now(), "x", "a.b", "1", "9", "2", "é-x", "3", "a", "\xff")) })
	pb("metadata of 100 KiB", 1, func() []byte { return stream(app, line(now(), "x", "a", strings.Repeat("v", 100<<10))) })
	pb("1,000 entries of metadata", 1, func() []byte {
		var m []string
		for i := range 1000 {
			m = append(m, fmt.Sprint("n", i), "v")
		}
		return stream(app, line(now(), "x", m...))
	})
	pb("2 million empty entries of metadata", 1, func() []byte { return stream(app, field(2, bytes.Repeat([]byte{0x1a, 0}, 2<<20))) })
	pb("2 million empty lines", 0, func() []byte { return field(1, append(field(1, []byte(app)), bytes.Repeat([]byte{0x12, 0}, 2<<20)...)) })
	pb("a million empty streams", 0, func() []byte { return bytes.Repeat([]byte{0x0a, 0}, 1<<20) })
	pb("10,000 streams of one line", 10_000, func() []byte {
		var b []byte
		for i := range 10_000 {
			b = append(b, stream(fmt.Sprintf(`{app="bi%d"}`, i), line(now(), "x"))...)
		}
		return b
	})

	pb("150,000 streams of one line", 0, func() []byte {
		var b []byte
		for i := range 150_000 {
			b = append(b, stream(fmt.Sprintf(`{app="bi%d"}`, i), field(2, nil))...)
		}
		return b
	})

	// JSON.
	js("not JSON", 0, "hello")
	js("an empty object", 0, "{}")
	js("null for streams", 0, `{"streams":null}`)
	js("streams that are an object", 0, `{"streams":{}}`)
	js("cut off", 0, `{"streams":[{"stream":{"a":"b"},"values":[["NOW","x"`)
	js("two values", 0, `{"streams":[]} {"streams":[]}`)
	js("a comma too many", 0, `{"streams":[],}`)
	js("100,000 brackets", 0, `{"x":`+strings.Repeat("[", 100_000))
	js("a time that is a number", 0, `{"streams":[{"stream":{"a":"b"},"values":[[NOW,"x"]]}]}`)
	js("a time of 30 digits and a good one", 2, `{"streams":[{"stream":{"a":"b"},"values":[["`+strings.Repeat("9", 30)+`","x"],["NOW","x"]]}]}`)
	js("the earliest time", 1, `{"streams":[{"stream":{"a":"b"},"values":[["-9223372036854775808","x"]]}]}`)
	js("a line that is a number", 0, `{"streams":[{"stream":{"a":"b"},"values":[["NOW",1]]}]}`)
	js("no line", 1, `{"streams":[{"stream":{"a":"b"},"values":[["NOW"]]}]}`)
	js("no time and no line", 1, `{"streams":[{"stream":{"a":"b"},"values":[[]]}]}`)
	js("half a surrogate", 0, `{"streams":[{"stream":{"a":"b"},"values":[["NOW","\ud800"]]}]}`)
	js("a bad escape", 0, `{"streams":[{"stream":{"a":"b"},"values":[["NOW","\x"]]}]}`)
	js("raw control bytes and invalid UTF-8", 1, "{\"streams\":[{\"stream\":{\"a\":\"b\"},\"values\":[[\"NOW\",\"\x00\n\xff\"]]}]}")
	js("a label of a dash", 1, `{"streams":[{"stream":{"a-b":"c"},"values":[["NOW","x"]]}]}`)
	js("a label that is an object", 1, `{"streams":[{"stream":{"a":{}},"values":[["NOW","x"]]}]}`)
	js("null for labels", 1, `{"streams":[{"stream":null,"values":[["NOW","x"]]}]}`)
	js("64 labels", 1, `{"streams":[{"stream":{`+strings.TrimSuffix(count(64, `"l%d":"v",`), ",")+`},"values":[["NOW","x"]]}]}`)
	js("65 labels", 1, `{"streams":[{"stream":{`+strings.TrimSuffix(count(65, `"l%d":"v",`), ",")+`},"values":[["NOW","x"]]}]}`)
	js("50,000 labels", 0, `{"streams":[{"stream":{`+strings.TrimSuffix(count(50_000, `"l%d":"v",`), ",")+`},"values":[["NOW","x"]]}]}`)
	js("a line of a million escapes", 1, `{"streams":[{"stream":{"a":"b"},"values":[["NOW","`+strings.Repeat(`\n`, 1_000_000)+`"]]}]}`)
	js("no labels", 1, `{"streams":[{"values":[["NOW","x"]]}]}`)
	js("metadata that is a number", 0, `{"streams":[{"stream":{"a":"b"},"values":[["NOW","x",{"a":1}]]}]}`)
	js("lines twice", 0, `{"streams":[{"stream":{"a":"b"},"values":[["NOW","x"]],"values":[]}]}`)
	send("the newer form at /api/prom/push", 1, "/api/prom/push", []string{"Content-Type", "application/json"}, fixed([]byte(`{"streams":[{"stream":{"a":"b"},"values":[["1","x"]]}]}`)))
	send("an invalid time at /api/prom/push", 0, "/api/prom/push", []string{"Content-Type", "application/json"}, fixed([]byte(`{"streams":[{"labels":"{a=\"b\"}","entries":[{"ts":"yesterday","line":"x"}]}]}`)))
	return g
}

// otlpText returns the text of a Status, or of the partial success of a response.
func otlpText(text string) string {
	b := []byte(text)
	prefixed := func(tag byte) bool {
		if len(b) == 0 || b[0] != tag {
			return false
		}
		_, n := binary.Uvarint(b[1:])
		b = b[1+max(n, 0):]
		return true
	}
	prefixed(0x0a)
	prefixed(0x08)
	if prefixed(0x12) {
		return string(b)
	}
	return text
}

func openTelemetry() group {
	g := group{file: "otlp", title: "OpenTelemetry, /otlp/v1/logs and /otlp/v1/metrics"}
	send := func(input string, lines, samples int, path string, headers []string, body func() []byte) {
		g.attacks = append(g.attacks, attack{input: input, lines: lines, samples: samples, do: func(t *testing.T, s *server) (string, string) {
			status, _, text := s.send(path, body(), headers...)
			return fmt.Sprint(status), otlpText(text)
		}})
	}
	const logs, metrics = "/otlp/v1/logs", "/otlp/v1/metrics"
	fixed := func(b []byte) func() []byte { return func() []byte { return b } }
	protobuf, asJSON := []string{"Content-Type", "application/x-protobuf"}, []string{"Content-Type", "application/json"}
	encoded := func(e string) []string { return append([]string{"Content-Encoding", e}, protobuf...) }
	nowNs := func() []byte {
		return binary.LittleEndian.AppendUint64(tag(1, wire64), uint64(time.Now().UnixNano()))
	}
	record := func(parts ...[]byte) []byte { return field(1, field(2, field(2, join(parts...)))) }
	nested := func(n int) []byte { // a value in a list in a value ...
		b := field(1, []byte("x"))
		for range n {
			b = field(5, field(1, b))
		}
		return b
	}
	metric := func(parts ...[]byte) []byte { return field(1, field(2, field(2, join(parts...)))) }
	name := field(1, []byte("bi_otlp"))
	at := func(t time.Time) []byte {
		return binary.LittleEndian.AppendUint64(tag(3, wire64), uint64(t.UnixNano()))
	}

	for _, path := range []string{logs, metrics} {
		g.attacks = append(g.attacks, attack{input: "GET " + path, do: func(t *testing.T, s *server) (string, string) {
			outcome, text := s.exchange(strings.NewReader("GET "+path+" HTTP/1.1\r\nHost: shale\r\nConnection: close\r\n\r\n"), 20*time.Second)
			return outcome, otlpText(text)
		}})
		what := strings.TrimPrefix(path, "/otlp/v1/") + ": "
		send(what+"no Content-Type", 0, 0, path, nil, fixed(nil))
		send(what+"Content-Encoding br", 0, 0, path, encoded("br"), fixed(nil))
		send(what+"garbage", 0, 0, path, protobuf, fixed([]byte("garbage, no protobuf")))
		send(what+"a length of 2^63", 0, 0, path, protobuf, fixed(append(tag(1, wireBytes), binary.AppendUvarint(nil, 1<<63)...)))
		send(what+"not JSON", 0, 0, path, asJSON, fixed([]byte("hello")))
		send(what+"JSON of a million brackets", 0, 0, path, asJSON, fixed(bytes.Repeat([]byte("["), 1<<20)))
		send(what+"100 MiB of zeros in gzip", 0, 0, path, encoded("gzip"), func() []byte { return zipped(make([]byte, 100<<20)) })
		send(what+"Content-Encoding lz4, body not lz4", 0, 0, path, encoded("lz4"), fixed([]byte("hello world")))
		send(what+"a body over limits.body-bytes", 0, 0, path, protobuf, fixed(make([]byte, bodyMiB<<20+1)))
		send(what+"2 million empty messages", 0, 0, path, protobuf, fixed(bytes.Repeat([]byte{0x0a, 0}, 2<<20)))
		send(what+"an empty request", 0, 0, path, protobuf, fixed(nil))
	}
	send("logs: a trace id of 3 bytes", 0, 0, logs, protobuf, fixed(record(field(9, []byte("abc")))))
	send("logs: a body nested 20 deep", 1, 0, logs, protobuf, func() []byte { return record(nowNs(), field(5, nested(20))) })
	send("logs: a body nested 10,000 deep", 0, 0, logs, protobuf, func() []byte { return record(nowNs(), field(5, nested(10_000))) })
	send("logs: a map of 500,000 empty members", 0, 0, logs, protobuf, func() []byte {
		return record(nowNs(), field(5, field(6, bytes.Repeat([]byte{0x0a, 0}, 500_000))))
	})
	send("logs: a map of 50,000 empty members", 1, 0, logs, protobuf, func() []byte {
		return record(nowNs(), field(5, field(6, bytes.Repeat([]byte{0x0a, 0}, 50_000))))
	})
	send("logs: an attribute of 500,000 empty members", 1, 0, logs, protobuf, func() []byte {
		return record(nowNs(), field(6, append(field(1, []byte("a")), field(2, field(6, bytes.Repeat([]byte{0x0a, 0}, 500_000)))...)))
	})
	send("logs: an attribute with a name of 60 KB and 400,000 empty maps", 1, 0, logs, protobuf, func() []byte {
		empty := field(1, append(field(1, []byte("e")), field(2, field(6, nil))...))
		return record(nowNs(), field(6, append(field(1, bytes.Repeat([]byte("k"), 60_000)), field(2, field(6, bytes.Repeat(empty, 400_000)))...)))
	})
	send("logs: an attribute without a name", 1, 0, logs, protobuf, func() []byte { return record(nowNs(), field(6, field(2, field(1, []byte("x"))))) })
	send("logs: a body of 300 KiB", 1, 0, logs, protobuf, func() []byte { return record(nowNs(), field(5, field(1, bytes.Repeat([]byte("x"), 300<<10)))) })
	send("logs: a record beyond the year 2262", 1, 0, logs, protobuf, fixed(record(binary.LittleEndian.AppendUint64(tag(1, wire64), 1<<63))))
	send("logs: two days old, and a good one", 2, 0, logs, protobuf, func() []byte {
		old := binary.LittleEndian.AppendUint64(tag(1, wire64), uint64(time.Now().Add(-48*time.Hour).UnixNano()))
		return join(record(nowNs()), record(old))
	})
	send("metrics: delta temporality", 0, 1, metrics, protobuf, func() []byte {
		return metric(name, field(7, join(field(1, at(time.Now())), append(tag(2, wireVarint), 1))))
	})
	send("metrics: no name", 0, 1, metrics, protobuf, func() []byte { return metric(field(5, field(1, at(time.Now())))) })
	send("metrics: two days old, and a good one", 0, 2, metrics, protobuf, func() []byte {
		return metric(name, field(5, join(field(1, at(time.Now())), field(1, at(time.Now().Add(-48*time.Hour))))))
	})
	send("metrics: times from 1970 on", 0, 2, metrics, protobuf, func() []byte {
		return metric(name, field(5, join(field(1, at(time.Now())), field(1, at(time.Unix(0, 1))))))
	})
	send("metrics: an attribute nested 10,000 deep", 0, 0, metrics, protobuf, func() []byte {
		return metric(name, field(5, field(1, field(7, field(2, nested(10_000))))))
	})
	send("metrics: a million empty points", 0, 0, metrics, protobuf, func() []byte { return metric(name, field(5, bytes.Repeat([]byte{0x0a, 0}, 1<<20))) })
	send("metrics: 4 million buckets of zero", 0, 0, metrics, protobuf, func() []byte {
		return metric(name, field(10, field(1, join(at(time.Now()), field(8, field(2, make([]byte, 3<<20)))))))
	})
	return g
}
