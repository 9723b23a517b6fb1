package lokipush

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/logs/logstest"
	"github.com/shaledb/shale/internal/write/writetest"
)

// heavy are bodies of either kind that take much memory for their size.
func heavy() map[string][]byte {
	var streams, long, object strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&streams, `{"stream":{"a":"%d"},"values":[["1",""]]},`, i)
	}
	for i := range 75_000 { // less than a MiB, beyond which labels are not parsed
		fmt.Fprintf(&long, `a%d="b",`, i)
		fmt.Fprintf(&object, `"a%d":"b",`, i)
	}
	good := `{"stream":{"a":"b"},"values":[["1","x"]]}`
	jsonOf := func(streams string) []byte { return []byte(`{"streams":[` + streams + good + `]}`) }
	message := func(b []byte) []byte { return message1(nil, 1, b) }
	stream := func(labels string, entries []byte) []byte {
		return message(append(message1(nil, 1, []byte(labels)), entries...))
	}
	var manyStreams []byte
	for i := range 100_000 {
		manyStreams = append(manyStreams, stream(fmt.Sprintf(`{a="%d"}`, i), message1(nil, 2, nil))...)
	}
	ok := stream(`{a="b"}`, message1(nil, 2, message1(nil, 2, []byte("x"))))
	pairs := bytes.Repeat(message1(nil, 3, message1(message1(nil, 1, []byte("n")), 2, []byte("v"))), 300_000)
	return map[string][]byte{
		"protobuf: lines":                         stream(`{a="b"}`, bytes.Repeat(message1(nil, 2, nil), 1_000_000)),
		"protobuf: long lines":                    stream(`{a="b"}`, bytes.Repeat(message1(nil, 2, message1(nil, 2, bytes.Repeat([]byte("x"), 200_000))), 40)),
		"protobuf: streams":                       manyStreams,
		"protobuf: labels":                        append(stream("{"+long.String()+`z="z"}`, message1(nil, 2, nil)), ok...),
		"protobuf: labels with escapes":           append(stream(`{e="\n",`+long.String()+`z="z"}`, message1(nil, 2, nil)), ok...),
		"protobuf: labels that are cut off":       append(stream(`{e="\n",`+long.String(), message1(nil, 2, nil)), ok...),
		"protobuf: metadata":                      append(stream(`{a="b"}`, message1(nil, 2, pairs)), ok...),
		"protobuf: metadata of many lines":        stream(`{a="b"}`, bytes.Repeat(message1(nil, 2, pairs[:8*100]), 5000)),
		"protobuf: metadata that is not UTF-8":    append(stream(`{a="b"}`, message1(nil, 2, message1(nil, 3, message1(message1(nil, 1, []byte("n")), 2, bytes.Repeat([]byte("\xff"), 4_000_000))))), ok...),
		"protobuf: names that need to be changed": append(stream(`{a="b"}`, message1(nil, 2, message1(nil, 3, message1(message1(nil, 1, bytes.Repeat([]byte("é"), 2_000_000)), 2, []byte("v"))))), ok...),
		"JSON: lines":                             jsonOf(`{"stream":{"a":"b"},"values":[` + strings.Repeat(`["1",""],`, 500_000) + `["1",""]]},`),
		"JSON: lines of escapes":                  jsonOf(`{"stream":{"a":"b"},"values":[["1","` + strings.Repeat(`\n`, 2_000_000) + `"]]},`),
		"JSON: long lines of escapes":             jsonOf(`{"stream":{"a":"b"},"values":[` + strings.Repeat(`["1","`+strings.Repeat(`\n`, 200_000)+`"],`, 20) + `["1",""]]},`),
		"JSON: streams":                           jsonOf(streams.String()),
		"JSON: labels":                            jsonOf(`{"stream":{` + object.String() + `"z":"z"},"values":[["1","x"]]},`),
		"JSON: labels of escapes":                 jsonOf(`{"stream":{"z":"` + strings.Repeat(`\n`, 450_000) + `"},"values":[["1","x"]]},`),
		"JSON: labels in a string":                jsonOf(`{"stream":"{` + strings.ReplaceAll(long.String(), `"`, `\"`) + `z=\"z\"}","values":[["1","x"]]},`),
		"JSON: metadata":                          jsonOf(`{"stream":{"a":"b"},"values":[["1","x",{` + strings.Repeat(`"a":"b",`, 500_000) + `"z":"z"}]]},`),
		"JSON: nested":                            jsonOf(`{"x":` + strings.Repeat(`[`, 60) + strings.Repeat(`]`, 60) + `,"stream":{"a":"b"},"values":[["1","x"]]},`),
	}
}

// TestMemoryIsReserved: a request has reserved what it holds, whatever is in its body.
func TestMemoryIsReserved(t *testing.T) {
	alloctest.Counts(t)
	for name, body := range heavy() {
		m := writetest.NewMeter()
		h := New(Options{Rules: logs.DefaultRules(), StreamCacheBytes: 64 << 10, Sink: write.New(write.Options{
			Seed: logstest.Seed, Head: m, Journal: m, Registerer: m.Registry, Now: func() int64 { return now },
			Limits: write.Limits{MaxInflightBytes: 1 << 30, MaxFuture: time.Hour},
		})})
		for _, encoding := range []string{"", "gzip", "zstd", "deflate"} {
			sent, headers := body, []string{"Content-Type", "application/json"}
			switch {
			case !strings.HasPrefix(name, "JSON"):
				sent, headers = snappy.Encode(nil, body), []string{"Content-Type", "application/x-protobuf"}
				if encoding != "" {
					continue
				}
			case encoding != "":
				sent, headers = compress(t, encoding, body), append(headers, "Content-Encoding", encoding)
			}
			use := m.Of(func() {
				if w := logstest.Post(h, Path, sent, headers...); w.Code != http.StatusNoContent && w.Code != http.StatusBadRequest {
					t.Errorf("%s: %d %s", name, w.Code, w.Body)
				}
			})
			garbage := int64(writetest.Garbage)
			if strings.HasSuffix(name, ": streams") {
				garbage = 4
			}
			use.Check(t, name+" "+encoding, garbage)
		}
	}
}
