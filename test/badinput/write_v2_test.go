//go:build e2e

package badinput

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

const typeV2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"

// post2 sends a body of remote write 2.0 and returns the status and the counts of written items from the
// headers.
func (s *server) post2(headers []string, body []byte) (outcome, text string) {
	status, h, text := s.send("/api/v1/write", body, protobufHeaders(append([]string{"Content-Type", typeV2}, headers...))...)
	outcome = fmt.Sprint(status)
	if h.Get("X-Prometheus-Remote-Write-Samples-Written") != "" {
		outcome += fmt.Sprintf(", written %s + %s + %s", h.Get("X-Prometheus-Remote-Write-Samples-Written"),
			h.Get("X-Prometheus-Remote-Write-Histograms-Written"), h.Get("X-Prometheus-Remote-Write-Exemplars-Written"))
	}
	return outcome, text
}

// adder returns a function that adds an attack with a body of remote write 2.0.
func (g *group) adder() func(input string, samples int, headers []string, body func() []byte) {
	return func(input string, samples int, headers []string, body func() []byte) {
		g.attacks = append(g.attacks, attack{input: input, samples: samples, do: func(t *testing.T, s *server) (string, string) {
			return s.post2(headers, body())
		}})
	}
}

// symbols returns the symbols that most requests use, and more.
func symbols(more ...string) []string {
	return append([]string{"", "__name__", "bi_v2", "a", "b"}, more...)
}

func request2(symbols []string, list ...writev2.TimeSeries) []byte {
	b, err := (&writev2.Request{Symbols: symbols, Timeseries: list}).Marshal()
	if err != nil {
		panic(err) // every message can be marshalled
	}
	return b
}

func message2(symbols []string, list ...writev2.TimeSeries) []byte {
	return s2.EncodeSnappy(nil, request2(symbols, list...))
}

func one2() []writev2.Sample { return []writev2.Sample{{Value: 1, Timestamp: nowMs()}} }

func refs(r ...uint32) writev2.TimeSeries { return writev2.TimeSeries{LabelsRefs: r, Samples: one2()} }

func remoteWrite2() group {
	g := group{file: "remote-write-2", title: "Remote write 2.0"}
	add := g.adder()
	goodBody := func() []byte { return message2(symbols(), refs(1, 2)) }
	for _, c := range [][2]string{
		{"Content-Type: an unknown message", "application/x-protobuf;proto=io.prometheus.write.v3.Request"},
		{"Content-Type: of 1.0, with a body of 2.0", "application/x-protobuf;proto=prometheus.WriteRequest"},
		{"Content-Type: proto twice", "application/x-protobuf;proto=io.prometheus.write.v2.Request;proto=prometheus.WriteRequest"},
		{"Content-Type: proto empty", "application/x-protobuf;proto="},
		{"Content-Type: proto without a value", "application/x-protobuf;proto"},
		{"Content-Type: text/plain", "text/plain;proto=io.prometheus.write.v2.Request"},
		{"Content-Type: 10,000 parameters", "application/x-protobuf" + strings.Repeat(";a=b", 10_000)},
	} {
		add(c[0], 0, []string{"Content-Type", c[1]}, goodBody)
	}
	add("Content-Type: with quotes, spaces and a charset", 1, []string{"Content-Type", `application/x-protobuf; charset=utf-8; proto="io.prometheus.write.v2.Request"`}, goodBody)
	add("X-Prometheus-Remote-Write-Version: 99", 1, []string{"X-Prometheus-Remote-Write-Version", "99"}, goodBody)
	add("Content-Encoding: gzip", 0, []string{"Content-Encoding", "gzip"}, goodBody)
	for _, v := range []string{"x", "-1", "99999999999999999999"} {
		add("Retry-Attempt: "+v, 1, []string{"Retry-Attempt", v}, goodBody)
	}
	send := func(input string, samples int, symbols []string, list func() []writev2.TimeSeries) {
		add(input, samples, nil, func() []byte { return message2(symbols, list()...) })
	}
	just := func(input string, samples int, symbols []string, r ...uint32) {
		send(input, samples, symbols, func() []writev2.TimeSeries { return []writev2.TimeSeries{refs(r...)} })
	}
	add("no body", 0, nil, func() []byte { return nil })
	add("an empty request", 0, nil, func() []byte { return message2(nil) })
	add("symbols alone", 0, nil, func() []byte { return message2(symbols()) })
	just("no symbols", 0, nil, 1, 2)
	just("no symbols and no labels", 0, nil)
	just("symbols[0] is not empty", 0, []string{"x", "__name__", "bi_v2"}, 1, 2)
	just("symbols[0] is __name__ and is used", 0, []string{"__name__", "bi_v2"}, 0, 1)
	just("no labels", 1, symbols())
	just("no name", 1, symbols(), 3, 4)
	just("one reference", 1, symbols(), 1)
	just("three references", 1, symbols(), 1, 2, 3)
	just("a reference past the last symbol", 1, symbols(), 1, 5)
	just("a reference of 4294967295", 1, symbols(), 1, math.MaxUint32)
	just("references of 0", 1, symbols(), 0, 0)
	just("a name that is reference 0", 1, symbols(), 1, 0)
	just("a label name that is reference 0", 1, symbols(), 1, 2, 0, 4)
	just("a label value that is reference 0", 1, symbols(), 1, 2, 3, 0)
	just("a label twice", 1, symbols(), 1, 2, 3, 4, 3, 4)
	just("a label twice with two values", 1, symbols(), 1, 2, 3, 4, 3, 2)
	just("unsorted labels", 1, symbols(), 3, 4, 1, 2)
	just("invalid UTF-8 in a symbol that is used", 1, symbols("\xff\xfe"), 1, 2, 3, 5)
	just("invalid UTF-8 in a symbol that is not used", 1, symbols("\xff\xfe"), 1, 2)
	just("a label value of 1 MB", 1, symbols(strings.Repeat("v", 1_000_000)), 1, 2, 3, 5)
	just("a symbol of 4 MB that is not used", 1, symbols(strings.Repeat("v", 4_000_000)), 1, 2)
	just("2 million empty symbols", 0, symbols(make([]string, 2_000_000)...), 1, 2)
	long := strings.Repeat("v", 4_000_000)
	send("a million references to one symbol of 4 MB", 1, symbols(long), func() []writev2.TimeSeries {
		r := []uint32{1, 2}
		for range 500_000 {
			r = append(r, 3, 5)
		}
		return []writev2.TimeSeries{refs(r...)}
	})
	send("100,000 series of one symbol of 4,000 bytes", 0, symbols(long[:4000]), func() (list []writev2.TimeSeries) {
		for range 100_000 {
			list = append(list, refs(1, 2, 3, 5))
		}
		return list
	})
	send("1,000 series of 60 times one symbol of 4,000 bytes", 0, append(symbols(long[:4000]), names(60)...), func() (list []writev2.TimeSeries) {
		for range 1000 {
			r := []uint32{1, 2}
			for i := range 60 {
				r = append(r, uint32(6+i), 5)
			}
			list = append(list, refs(r...))
		}
		return list
	})
	send("bad series between good ones", 3, symbols(), func() []writev2.TimeSeries {
		return []writev2.TimeSeries{refs(1, 2), refs(1, 9), refs(1, 4)}
	})
	send("a series without samples", 0, symbols(), func() []writev2.TimeSeries { return []writev2.TimeSeries{{LabelsRefs: []uint32{1, 2}}} })
	send("a series without samples between good ones", 2, symbols(), func() []writev2.TimeSeries {
		return []writev2.TimeSeries{refs(1, 2), {LabelsRefs: []uint32{1, 2}}, refs(1, 4)}
	})
	send("a million empty series", 0, symbols(), func() []writev2.TimeSeries { return make([]writev2.TimeSeries, 1_000_000) })
	send("samples and histograms in one series", 2, symbols(), func() []writev2.TimeSeries {
		ts := refs(1, 4)
		ts.Histograms = []writev2.Histogram{goodHistogram()}
		return []writev2.TimeSeries{ts}
	})
	for _, c := range []struct {
		input  string
		ms, st int64
	}{
		{"time: int64 min", math.MinInt64, 0}, {"time: int64 max", math.MaxInt64, 0}, {"time: 0", 0, 0},
		{"start timestamp: int64 min", -1, math.MinInt64}, {"start timestamp: int64 max", -1, math.MaxInt64}, {"start timestamp: -1", -1, -1},
		{"start timestamp: after the sample", -1, math.MaxInt32 * 1000},
	} {
		send(c.input, 1, symbols(), func() []writev2.TimeSeries {
			ms := c.ms
			if ms == -1 {
				ms = nowMs()
			}
			return []writev2.TimeSeries{{LabelsRefs: []uint32{1, 2}, Samples: []writev2.Sample{{Value: 1, Timestamp: ms, StartTimestamp: c.st}}}}
		})
	}
	raw := func(input string, samples int, body func() []byte) {
		add(input, samples, nil, func() []byte { return s2.EncodeSnappy(nil, body()) })
	}
	sym := func() []byte { return join(field(4, nil), field(4, []byte("__name__")), field(4, []byte("bi_raw2"))) }
	raw("references that are not packed", 1, func() []byte {
		return join(sym(), field(5, join(tag(1, wireVarint), []byte{1}, tag(1, wireVarint), []byte{2}, one())))
	})
	raw("references as fixed32", 0, func() []byte { return join(sym(), field(5, join(tag(1, wire32), []byte{1, 0, 0, 0}, one()))) })
	raw("a reference of 2^63", 1, func() []byte {
		return join(sym(), field(5, join(field(1, []byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), one())))
	})
	raw("a reference that is 2 when 32 bits of it are taken", 1, func() []byte {
		return join(sym(), field(5, join(field(1, []byte{1, 0x82, 0x80, 0x80, 0x80, 0x10}), one())))
	})
	raw("references cut in a varint", 0, func() []byte { return join(sym(), field(5, join(field(1, []byte{1, 0x82}), one()))) })
	raw("symbols after the series", 1, func() []byte { return join(field(5, join(field(1, []byte{1, 2}), one())), sym()) })
	raw("a symbol as varint", 0, func() []byte { return join(sym(), tag(4, wireVarint), []byte{1}) })
	raw("cut in the middle", 0, func() []byte { b := request2(symbols(), refs(1, 2)); return b[:len(b)-4] })
	raw("a length of 2^62", 0, func() []byte {
		return join(sym(), tag(5, wireBytes), []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40})
	})
	raw("garbage", 0, func() []byte { return []byte("garbage, no protobuf") })
	raw("unknown fields", 1, func() []byte {
		return join(sym(), field(99, []byte("x")), field(5, join(field(1, []byte{1, 2}), one(), field(98, []byte("y")))))
	})
	raw("a series of 1.0 after one of 2.0", 0, func() []byte {
		return join(sym(), field(5, join(field(1, []byte{1, 2}), one())), series(good("bi_raw2"), one()))
	})
	return g
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("n%03d", i))
	}
	return list
}
