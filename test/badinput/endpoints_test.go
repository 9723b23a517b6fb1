//go:build e2e

package badinput

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/prompb"
)

func endpoints() group {
	g := group{file: "prometheus-other", title: "Prometheus API: other endpoints"}
	add := func(path, input string, form url.Values) {
		g.attacks = append(g.attacks, attack{input: path + ": " + input, do: ending(func(s *server) (string, string) {
			outcome, text := s.ask(path, form)
			if outcome == "200" && strings.HasPrefix(text, "# TYPE") {
				text = "text"
			}
			return outcome, text
		})})
	}
	q := func(text string) url.Values { return url.Values{"query": {text}} }
	for _, path := range []string{"/api/v1/format_query", "/api/v1/parse_query"} {
		add(path, "no query", nil)
		add(path, "empty", q(""))
		add(path, "a syntax error", q("up{"))
		add(path, "invalid UTF-8", q("up{a=\"\xff\"}"))
		add(path, "NUL", q("up\x00"))
		add(path, "{}", q("{}"))
		add(path, "an unknown function", q("nosuch(up)"))
		add(path, "100,000 opening parentheses", q(strings.Repeat("(", 100_000)))
		add(path, "100,000 nested parentheses", q(strings.Repeat("(", 100_000)+"1"+strings.Repeat(")", 100_000)))
		add(path, "1,900 nested parentheses", q(strings.Repeat("(", 1900)+"1"+strings.Repeat(")", 1900)))
		add(path, "1,900 nested sums", q(strings.Repeat("sum(", 1900)+"up"+strings.Repeat(")", 1900)))
		add(path, "100,000 minus signs", q(strings.Repeat("-", 100_000)+"1"))
		add(path, "100,000 additions", q(strings.Repeat("1+", 100_000)+"1"))
		add(path, "1,900 additions of long names", q(strings.Repeat(strings.Repeat("n", 400)+"+", 1900)+"1"))
		add(path, "50,000 matchers", q("up{"+strings.Repeat(`a!="b",`, 50_000)+"}"))
		add(path, "a regular expression of 1,000 times .{1000}", q(`up{a=~"`+strings.Repeat(".{1000}", 1000)+`"}`))
		add(path, "1 MB of one string", q(`"`+strings.Repeat("s", 1_000_000)+`"`))
		add(path, "1 MB of spaces", q(strings.Repeat(" ", 1_000_000)))
		add(path, "a form of 2 MB", q(strings.Repeat("n", 2_000_000)))
	}
	exemplars := func(input, query string, pairs ...string) {
		form := q(query)
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		add("/api/v1/query_exemplars", input, form)
	}
	exemplars("empty", "")
	exemplars("a syntax error", "up{")
	exemplars("{}", "{}")
	exemplars("an expression without selectors", "1+1")
	exemplars("no times", "bi_v2")
	exemplars("end before start", "up", "start", "10", "end", "5")
	exemplars("start=x", "up", "start", "x", "end", "5")
	exemplars("start=NaN", "up", "start", "NaN", "end", "5")
	exemplars("start=-1e300, end=1e300", "up", "start", "-1e300", "end", "1e300")
	exemplars("1,000 selectors", strings.Repeat("bi_data or ", 1000)+"bi_data", "start", "0", "end", "5")
	exemplars("100,000 nested parentheses", strings.Repeat("(", 100_000)+"up"+strings.Repeat(")", 100_000), "start", "0", "end", "5")
	exemplars("a regular expression of 1,000 times .{1000}", `up{a=~"`+strings.Repeat(".{1000}", 1000)+`"}`, "start", "0", "end", "5")
	exemplars("an offset of 290 years", "bi_v2 offset 290y", "start", "0", "end", "5")

	for _, name := range []string{"limit", "limit_per_metric"} {
		for _, bad := range []string{"x", "-1", "1.5", "1e3", "99999999999999999999", ""} {
			add("/api/v1/metadata", name+"="+bad, url.Values{name: {bad}, "metric": {"bi_nosuch"}})
		}
	}
	add("/api/v1/metadata", "metric with invalid UTF-8", url.Values{"metric": {"\xff"}})
	add("/api/v1/metadata", "metric of 1 MB", url.Values{"metric": {strings.Repeat("n", 1_000_000)}})

	match := func(m ...string) url.Values { return url.Values{"match[]": m} }
	add("/federate", "no match[]", nil)
	add("/federate", "match[]= empty", match(""))
	add("/federate", "match[]={}", match("{}"))
	add("/federate", "match[]=up{", match("up{"))
	add("/federate", "match[]=sum(up)", match("sum(up)"))
	add("/federate", "match[]=up[5m]", match("up[5m]"))
	add("/federate", "match[]=up offset 1h", match("up offset 1h"))
	add("/federate", "match[] with invalid UTF-8", match("up{a=\"\xff\"}"))
	add("/federate", `match[]={__name__=~".*"}`, match(`{__name__=~".*"}`))
	add("/federate", "match[] that selects nothing", match("bi_nosuch"))
	add("/federate", "257 match[]", match(strings.Split(strings.Repeat("up,", 256)+"up", ",")...))
	add("/federate", "10,000 match[]", match(strings.Split(strings.Repeat("up,", 9999)+"up", ",")...))
	add("/federate", "a good match[] and a bad one", match("up", "up{"))
	add("/federate", "100,000 nested parentheses", match(strings.Repeat("(", 100_000)+"up"+strings.Repeat(")", 100_000)))
	add("/federate", "a regular expression of 1,000 times .{1000}", match(`up{a=~"`+strings.Repeat(".{1000}", 1000)+`"}`))

	for _, bad := range []string{"x", "-1", "0", "10001", "1e3", "99999999999999999999"} {
		add("/api/v1/status/tsdb", "limit="+bad, url.Values{"limit": {bad}})
	}
	for _, name := range []string{"config", "flags", "runtimeinfo", "buildinfo", "walreplay", "tsdb", "nosuch", "", "tsdb/blocks", "config/", "..%2F..%2Fetc"} {
		path := "/api/v1/status/" + name
		request := func(method, more string) {
			g.attacks = append(g.attacks, attack{input: strings.TrimSpace(method + " " + path + " " + more), do: func(_ *testing.T, s *server) (string, string) {
				outcome, text := s.exchange(strings.NewReader(method+" "+path+" HTTP/1.1\r\nHost: s\r\nConnection: close\r\nContent-Length: 0\r\n"+more+"\r\n"), 10*time.Second)
				if outcome == "200" && len(text) > 0 {
					text = "JSON"
				}
				return outcome, text
			}})
		}
		request("PUT", "")
		if !strings.ContainsAny(name, "%/") && name != "" && name != "nosuch" {
			request("GET", "X-Scope-OrgID: ../x\r\n")
		} else {
			request("GET", "")
		}
	}
	// Names of labels with escapes, as Grafana writes them.
	for _, name := range []string{"U__a_", "U__a_2e", "U__a_2E_b", "U__a__b", "U___", "U____", "U___20ac_", "U___d800_", "U___110000_", "U___-1_", "U___ 2e_", "U___ff_\xff", "U__" + strings.Repeat("_2e_", 3000), "a.b", "%E2%82%AC", "%C0%80"} {
		input := strings.ToValidUTF8(name, "\\xff")
		if len(input) > 100 {
			input = input[:20] + "... (long)"
		}
		g.attacks = append(g.attacks, attack{input: "label/" + input + "/values", do: func(_ *testing.T, s *server) (string, string) {
			escaped := strings.NewReplacer(" ", "%20", "\xff", "%FF").Replace(name)
			return s.exchange(strings.NewReader("GET /api/v1/label/"+escaped+"/values HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n"), 10*time.Second)
		}})
	}
	return g
}

// read sends a body to remote read. A successful response is described by its content type.
func (s *server) read(headers []string, body []byte) (outcome, text string) {
	status, h, text := s.send("/api/v1/read", body, protobufHeaders(headers)...)
	if status == http.StatusOK {
		return "200", h.Get("Content-Type")
	}
	return fmt.Sprint(status), errorText(text)
}

func remoteRead() group {
	g := group{file: "prometheus-remote-read", title: "Prometheus API: remote read"}
	add := func(input string, headers []string, body func() []byte) {
		g.attacks = append(g.attacks, attack{input: input, do: ending(func(s *server) (string, string) {
			return s.read(headers, body())
		})})
	}
	pack := func(r *prompb.ReadRequest) []byte {
		b, err := r.Marshal()
		if err != nil {
			panic(err) // every message can be marshalled
		}
		return s2.EncodeSnappy(nil, b)
	}
	matcher := func(typ prompb.LabelMatcher_Type, name, value string) *prompb.LabelMatcher {
		return &prompb.LabelMatcher{Type: typ, Name: name, Value: value}
	}
	query := func(start, end int64, m ...*prompb.LabelMatcher) *prompb.Query {
		return &prompb.Query{StartTimestampMs: start, EndTimestampMs: end, Matchers: m}
	}
	none, data := matcher(0, "__name__", "bi_nosuch"), matcher(0, "__name__", "bi_data")
	good := func() []byte { return pack(&prompb.ReadRequest{Queries: []*prompb.Query{query(0, nowMs(), none)}}) }
	add("no body", nil, func() []byte { return nil })
	add("text", nil, func() []byte { return []byte("hello world, this is no snappy") })
	add("protobuf without snappy", nil, func() []byte { b := good(); b, _ = s2.Decode(nil, b); return b })
	add("snappy cut in the middle", nil, func() []byte { b := good(); return b[:len(b)/2] })
	add("snappy that declares 4 GB", nil, func() []byte { return []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 'x'} })
	add("snappy that declares 2^63 bytes", nil, func() []byte { return []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f} })
	add("2 MiB of zeros in snappy", nil, func() []byte { return s2.EncodeSnappy(nil, make([]byte, 2<<20)) })
	add("a body of 2 MB", nil, func() []byte { return make([]byte, 2_000_000) })
	add("garbage in snappy", nil, func() []byte { return s2.EncodeSnappy(nil, []byte("garbage, no protobuf")) })
	add("protobuf cut in the middle", nil, func() []byte { b, _ := s2.Decode(nil, good()); return s2.EncodeSnappy(nil, b[:len(b)-4]) })
	add("Content-Encoding: gzip", []string{"Content-Encoding", "gzip"}, good)
	add("Content-Encoding: none", []string{"Content-Encoding", ""}, good)
	add("Content-Type: application/json", []string{"Content-Type", "application/json"}, good)
	add("a bad tenant", []string{"X-Scope-OrgID", "../x"}, good)
	add("X-Prometheus-Remote-Read-Version: 99", []string{"X-Prometheus-Remote-Read-Version", "99"}, good)
	q := func(input string, list ...*prompb.Query) {
		for _, typ := range []prompb.ReadRequest_ResponseType{prompb.ReadRequest_SAMPLES, prompb.ReadRequest_STREAMED_XOR_CHUNKS} {
			what := "samples: "
			if typ == prompb.ReadRequest_STREAMED_XOR_CHUNKS {
				what = "chunks: "
			}
			add(what+input, nil, func() []byte {
				return pack(&prompb.ReadRequest{Queries: list, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{typ}})
			})
		}
	}
	q("no queries")
	q("no matchers", query(0, 1))
	q("end before start", query(10, 5, none))
	q("from int64 min to int64 max", query(math.MinInt64, math.MaxInt64, data))
	q("from int64 max to int64 min", query(math.MaxInt64, math.MinInt64, data))
	q("matcher of type 99", query(0, 1, matcher(99, "a", "b")))
	q("matcher of type -1", query(0, 1, matcher(-1, "a", "b")))
	q("a bad regular expression", query(0, 1, matcher(prompb.LabelMatcher_RE, "a", "(")))
	q("a regular expression of 1,000 times .{1000}", query(0, 1, matcher(prompb.LabelMatcher_RE, "a", strings.Repeat(".{1000}", 1000))))
	q("a matcher without a name", query(0, 1, matcher(0, "", "b")))
	q("a matcher with invalid UTF-8", query(0, 1, matcher(0, "\xff", "\xff")))
	q("a matcher that selects all: .*", query(0, 1, matcher(prompb.LabelMatcher_RE, "__name__", ".*")))
	many := make([]*prompb.LabelMatcher, 20_000)
	for i := range many {
		many[i] = matcher(prompb.LabelMatcher_NEQ, "a", "b")
	}
	q("20,000 matchers", query(0, 1, many...))
	queries := make([]*prompb.Query, 257)
	for i := range queries {
		queries[i] = query(0, 1, none)
	}
	q("257 queries", queries...)
	hint := query(0, 1, none)
	hint.Hints = &prompb.ReadHints{StepMs: -1, Func: "nosuch", StartMs: math.MaxInt64, EndMs: math.MinInt64, RangeMs: math.MinInt64}
	q("hints that make no sense", hint)
	for _, types := range [][]prompb.ReadRequest_ResponseType{{99}, {99, 0}} {
		add(fmt.Sprint("response types ", strings.ReplaceAll(fmt.Sprintf("%d", types), " ", ", ")), nil, func() []byte {
			return pack(&prompb.ReadRequest{Queries: []*prompb.Query{query(0, 1, none)}, AcceptedResponseTypes: types})
		})
	}
	add("100,000 unknown response types", nil, func() []byte {
		types := make([]prompb.ReadRequest_ResponseType, 100_000)
		for i := range types {
			types[i] = 99
		}
		return pack(&prompb.ReadRequest{AcceptedResponseTypes: types})
	})
	for _, method := range []string{"GET", "PUT", "HEAD"} {
		g.attacks = append(g.attacks, attack{input: method, do: func(_ *testing.T, s *server) (string, string) {
			return s.exchange(strings.NewReader(method+" /api/v1/read HTTP/1.1\r\nHost: s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), 10*time.Second)
		}})
	}
	return g
}
