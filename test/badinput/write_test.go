//go:build e2e

package badinput

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

func nowMs() int64 { return time.Now().UnixMilli() }

func one() []byte { return sample(1, nowMs()) }

func remoteWrite() group {
	g := group{file: "remote-write-1", title: "Remote write 1.0, POST /api/v1/write"}
	add := func(input string, samples int, headers []string, body func() []byte) {
		g.attacks = append(g.attacks, attack{input: input, samples: samples, do: func(t *testing.T, s *server) (string, string) {
			status, text := s.post(headers, body())
			return fmt.Sprint(status), text
		}})
	}
	raw := func(input string, send func() io.Reader) {
		g.attacks = append(g.attacks, attack{input: input, do: func(t *testing.T, s *server) (string, string) {
			return s.exchange(send(), 75*time.Second)
		}})
	}
	header := func(more string) string {
		return "POST /api/v1/write HTTP/1.1\r\nHost: shale\r\nContent-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n" + more + "\r\n"
	}
	fixed := func(b []byte) func() []byte { return func() []byte { return b } }
	goodBody := func() []byte { return message(series(good("bi_good"), one())) }

	for _, method := range []string{"GET", "PUT", "DELETE", "HEAD", "OPTIONS"} {
		raw(method, func() io.Reader {
			return strings.NewReader(method + " /api/v1/write HTTP/1.1\r\nHost: shale\r\nConnection: close\r\n\r\n")
		})
	}
	add("no body", 0, nil, fixed(nil))
	add("an empty snappy block", 0, nil, fixed([]byte{0}))
	add("text instead of snappy", 0, nil, fixed([]byte("hello world, this is no snappy")))
	add("protobuf without snappy", 0, nil, func() []byte { return series(good("bi_raw"), one()) })
	add("gzip in Content-Encoding and body", 0, []string{"Content-Encoding", "gzip"}, func() []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(series(good("bi_gzip"), one()))
		z.Close()
		return b.Bytes()
	})
	add("zstd in Content-Encoding and body", 0, []string{"Content-Encoding", "zstd"}, func() []byte {
		z, _ := zstd.NewWriter(nil)
		return z.EncodeAll(series(good("bi_zstd"), one()), nil)
	})
	add("snappy twice in Content-Encoding", 0, []string{"Content-Encoding", "snappy, snappy"}, goodBody)
	add("no Content-Encoding, snappy body", 1, []string{"Content-Encoding", ""}, goodBody)
	add("no Content-Type", 1, []string{"Content-Type", ""}, goodBody)
	add("Content-Type of JSON", 0, []string{"Content-Type", "application/json"}, goodBody)
	add("Content-Type that is not a media type", 0, []string{"Content-Type", "/;;="}, goodBody)
	add("Content-Type of remote write 2.0", 0, []string{"Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request"}, goodBody)
	add("remote write 2.0 as 1.0", 0, nil, func() []byte {
		v2 := join(field(4, nil), field(4, []byte("__name__")), field(4, []byte("bi_v2")), field(5, join(field(1, []byte{1, 2}), one())))
		return s2.EncodeSnappy(nil, v2)
	})
	add("framed snappy (the stream format)", 0, nil, func() []byte {
		var b bytes.Buffer
		w := s2.NewWriter(&b, s2.WriterSnappyCompat())
		_, _ = w.Write(series(good("bi_framed"), one()))
		w.Close()
		return b.Bytes()
	})
	add("snappy that declares 4 GB", 0, nil, fixed([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 'x'}))
	add("snappy that declares 2^63 bytes", 0, nil, fixed([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}))
	add("snappy that declares more than it has", 0, nil, fixed([]byte{0x80, 0x80, 0x10, 0, 'x'}))
	add("snappy cut in the middle", 0, nil, func() []byte { b := goodBody(); return b[:len(b)/2] })
	add("snappy with a copy from before its start", 0, nil, fixed([]byte{8, 0x01 | 4<<2, 0x10}))
	add("decoded over limits.decoded-bytes", 0, nil, func() []byte { return s2.EncodeSnappy(nil, make([]byte, decodedMiB<<20+1)) })
	add("8 MiB of zero bytes in snappy", 0, nil, func() []byte { return s2.EncodeSnappy(nil, make([]byte, decodedMiB<<20)) })
	add("garbage in snappy", 0, nil, fixed(s2.EncodeSnappy(nil, []byte("garbage, no protobuf"))))
	add("protobuf cut in the middle", 0, nil, func() []byte { b := series(good("bi_cut"), one()); return s2.EncodeSnappy(nil, b[:len(b)-4]) })
	add("a good series, then a cut one", 0, nil, func() []byte {
		b := series(good("bi_cut2"), one())
		return s2.EncodeSnappy(nil, join(b, b[:len(b)-4]))
	})
	add("a varint of 11 bytes", 0, nil, fixed(message(append(tag(1, wireBytes), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1))))
	add("field number 0", 0, nil, fixed(message([]byte{0x02, 0x00})))
	add("a length of 2^63", 0, nil, fixed(message(append(tag(1, wireBytes), binary.AppendUvarint(nil, 1<<63)...))))
	add("series as varint", 0, nil, fixed(message(append(tag(1, wireVarint), 5))))
	add("series as group", 0, nil, fixed(message(tag(1, wireGroup), tag(1, 4))))
	add("an unknown group", 0, nil, fixed(message(tag(9, wireGroup), tag(9, 4))))
	add("label as varint", 0, nil, fixed(message(series(append(tag(1, wireVarint), 5), one()))))
	add("label name as fixed64", 0, nil, fixed(message(series(field(1, append(tag(1, wire64), 0, 0, 0, 0, 0, 0, 0, 0)), one()))))
	add("sample value as fixed32", 0, nil, fixed(message(series(good("bi_w"), field(2, append(tag(1, wire32), 0, 0, 0, 0))))))
	add("sample time as fixed64", 0, nil, fixed(message(series(good("bi_w"), field(2, append(tag(2, wire64), 0, 0, 0, 0, 0, 0, 0, 0))))))
	add("an empty sample (value 0 at time 0)", 1, nil, fixed(message(series(good("bi_empty"), field(2, nil)))))
	add("unknown fields of every wire type", 1, nil, func() []byte {
		unknown := join(append(tag(99, wireVarint), 1), append(tag(98, wire32), 0, 0, 0, 0), append(tag(97, wire64), 0, 0, 0, 0, 0, 0, 0, 0), field(96, []byte("x")))
		return message(unknown, series(unknown, good("bi_unknown"), one()))
	})

	// Labels.
	add("no __name__", 1, nil, func() []byte { return message(series(label("job", "x"), one())) })
	add("no labels", 1, nil, func() []byte { return message(series(one())) })
	add("no labels and no samples", 0, nil, fixed(message(series())))
	add("a series without samples", 0, nil, fixed(message(series(good("bi_none")))))
	add("an empty metric name", 1, nil, func() []byte { return message(series(good(""), one())) })
	add("an empty label name", 1, nil, func() []byte { return message(series(good("bi_l"), label("", "x"), one())) })
	add("an empty label value", 1, nil, func() []byte { return message(series(good("bi_empty_value"), label("a", ""), one())) })
	add("labels twice with one value", 1, nil, func() []byte { return message(series(good("bi_l"), label("a", "1"), label("a", "1"), one())) })
	add("labels twice with two values", 1, nil, func() []byte { return message(series(good("bi_l"), label("a", "1"), label("a", "2"), one())) })
	add("unsorted labels", 1, nil, func() []byte { return message(series(label("z", "1"), good("bi_unsorted"), label("a", "1"), one())) })
	add("labels after the samples", 1, nil, func() []byte { return message(series(one(), good("bi_behind"))) })
	add("invalid UTF-8 in a label value", 1, nil, func() []byte { return message(series(good("bi_l"), label("a", "\xff\xfe"), one())) })
	add("invalid UTF-8 in a label name", 1, nil, func() []byte { return message(series(good("bi_l"), label("\xff", "x"), one())) })
	add("invalid UTF-8 in the metric name", 1, nil, func() []byte { return message(series(good("bi_\xc0\x80"), one())) })
	add("NUL in a label value", 1, nil, func() []byte { return message(series(good("bi_nul"), label("a", "x\x00y"), one())) })
	add("a label value of 1 MB", 1, nil, func() []byte { return message(series(good("bi_l"), label("a", strings.Repeat("v", 1_000_000)), one())) })
	add("a label name of 2,000 bytes", 1, nil, func() []byte { return message(series(good("bi_l"), label(strings.Repeat("n", 2000), "v"), one())) })
	add("65 labels", 1, nil, func() []byte { return message(series(good("bi_l"), labels(64), one())) })
	add("100,000 labels", 1, nil, func() []byte { return message(series(good("bi_l"), labels(100_000), one())) })
	add("100,000 equal labels", 1, nil, func() []byte {
		return message(series(good("bi_l"), bytes.Repeat(label("a", "b"), 100_000), one()))
	})
	add("bad series between good ones", 3, nil, func() []byte {
		return message(series(good("bi_ok1"), one()), series(label("a", "b"), one()), series(good("bi_ok2"), one()))
	})

	// Samples.
	for _, c := range []struct {
		input string
		ms    int64
	}{{"time: int64 min", math.MinInt64}, {"time: int64 max", math.MaxInt64}, {"time: 0", 0}, {"time: -1 ms", -1}} {
		add(c.input, 1, nil, func() []byte { return message(series(good("bi_t"), sample(1, c.ms))) })
	}
	add("time: two days ago", 1, nil, func() []byte { return message(series(good("bi_t"), sample(1, nowMs()-48*3600_000))) })
	add("time: in an hour", 1, nil, func() []byte { return message(series(good("bi_t"), sample(1, nowMs()+3600_000))) })
	add("time: in seconds", 1, nil, func() []byte { return message(series(good("bi_t"), sample(1, nowMs()/1000))) })
	add("value: NaN, stale marker, infinities", 4, nil, func() []byte {
		now := nowMs()
		return message(series(good("bi_nan"), sample(math.NaN(), now-3), sample(math.Float64frombits(0x7ff0000000000002), now-2),
			sample(math.Inf(1), now-1), sample(math.Inf(-1), now)))
	})
	add("samples out of order and twice", 4, nil, func() []byte {
		now := nowMs()
		return message(series(good("bi_order"), sample(1, now), sample(2, now-1000), sample(3, now), sample(4, now-2000)))
	})
	add("a histogram", 1, nil, func() []byte { return message(series(good("bi_h"), field(4, nil))) })
	add("an exemplar", 1, nil, func() []byte { return message(series(good("bi_ex"), one(), field(3, nil))) })
	add("only metadata", 0, nil, fixed(message(field(3, field(2, []byte("bi_meta"))))))
	add("400,000 samples that are too old", 400_000, nil, func() []byte {
		return message(series(good("bi_t"), bytes.Repeat(sample(1, nowMs()-48*3600_000), 400_000)))
	})
	add("400,000 samples that are too old, of a series with 60 labels", 400_000, nil, func() []byte {
		return message(series(good("bi_t"), labels(60), bytes.Repeat(sample(1, nowMs()-48*3600_000), 400_000)))
	})
	add("300,000 samples in one series", 300_000, nil, func() []byte {
		var b []byte
		for i := range 300_000 {
			b = append(b, sample(1, nowMs()-int64(i))...)
		}
		return message(series(good("bi_many"), b))
	})
	add("2 million samples of two bytes", 0, nil, func() []byte {
		return message(series(good("bi_zero"), bytes.Repeat(field(2, nil), 2_000_000)))
	})
	add("4 million empty series", 0, nil, fixed(message(bytes.Repeat(series(), 4_000_000))))
	add("50,000 new series", 50_000, nil, func() []byte {
		var b []byte
		for i := range 50_000 {
			b = append(b, series(good("bi_new"), label("i", fmt.Sprint(i)), one())...)
		}
		return message(b)
	})

	// Tenants.
	tenant := func(input, name string, samples int) { add(input, samples, []string{"X-Scope-OrgID", name}, goodBody) }
	tenant("tenant: ../x", "../x", 0)
	tenant("tenant: ..", "..", 0)
	tenant("tenant: of 200 bytes", strings.Repeat("t", 200), 0)
	tenant("tenant: a|b", "a|b", 0)
	tenant("tenant: with a quote and a space", `a" b`, 0)
	tenant("tenant: invalid UTF-8", "a\xff", 0)
	tenant("tenant: empty header", "", 1)
	g.attacks = append(g.attacks, attack{input: "20 tenants where 8 are allowed", do: func(t *testing.T, s *server) (string, string) {
		count, text := map[int]int{}, ""
		for i := range 20 {
			status, body := s.post([]string{"X-Scope-OrgID", fmt.Sprint("t", i)}, goodBody())
			count[status]++
			if status != http.StatusNoContent {
				text = body
			}
		}
		return fmt.Sprint(count), text
	}})

	// Framing by HTTP.
	raw("Content-Length 10 with 3 bytes, half closed", func() io.Reader {
		return strings.NewReader("") // replaced below
	})
	g.attacks[len(g.attacks)-1].do = func(t *testing.T, s *server) (string, string) {
		conn, err := net.Dial("tcp", s.httpAddr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		write(conn, header("Content-Length: 10\r\n")+"abc")
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		all, _ := io.ReadAll(conn)
		line, rest, _ := strings.Cut(string(all), "\r\n")
		_, body, _ := strings.Cut(rest, "\r\n\r\n")
		return strings.TrimPrefix(line, "HTTP/1.1 "), body
	}
	raw("Content-Length -1", func() io.Reader { return strings.NewReader(header("Content-Length: -1\r\n")) })
	raw("Content-Length 2^64", func() io.Reader { return strings.NewReader(header("Content-Length: 18446744073709551616\r\n")) })
	raw("Content-Length 2^62", func() io.Reader { return strings.NewReader(header("Content-Length: 4611686018427387904\r\n")) })
	raw("two different Content-Length", func() io.Reader {
		return strings.NewReader(header("Content-Length: 1\r\nContent-Length: 2\r\n") + "ab")
	})
	raw("Content-Length and chunked", func() io.Reader {
		return strings.NewReader(header("Connection: close\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n") + "1\r\n\x00\r\n0\r\n\r\n")
	})
	raw("Transfer-Encoding: gzip", func() io.Reader { return strings.NewReader(header("Transfer-Encoding: gzip\r\n") + "x") })
	raw("a chunk of size zz", func() io.Reader { return strings.NewReader(header("Transfer-Encoding: chunked\r\n") + "zz\r\nabc") })
	raw("a chunk of size 2^64", func() io.Reader {
		return strings.NewReader(header("Transfer-Encoding: chunked\r\n") + "10000000000000000\r\nabc")
	})
	raw("body of 4 MiB and a byte", func() io.Reader {
		return io.MultiReader(strings.NewReader(header(fmt.Sprintf("Content-Length: %d\r\n", bodyMiB<<20+1))), zeros(bodyMiB<<20+1))
	})
	raw("body of 100 MB", func() io.Reader {
		return io.MultiReader(strings.NewReader(header("Content-Length: 100000000\r\n")), zeros(100_000_000))
	})
	raw("chunked without an end", func() io.Reader {
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("\x00", 64<<10))
		return io.MultiReader(strings.NewReader(header("Transfer-Encoding: chunked\r\n")), strings.NewReader(strings.Repeat(chunk, 400)))
	})
	raw("Expect: 100-continue with a body that is too large", func() io.Reader {
		return strings.NewReader(header("Expect: 100-continue\r\nContent-Length: 100000000\r\n"))
	})
	return g
}

// labels makes n sorted labels that sort after __name__.
func labels(n int) []byte {
	var b []byte
	for i := range n {
		b = append(b, label(fmt.Sprintf("l%06d", i), "v")...)
	}
	return b
}
