package oracle

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	config_util "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// readAs reads a server with the client of Prometheus, which takes chunks if it may.
func readAs(t *testing.T, server string, chunked bool, from, until int64, hints *storage.SelectHints, ms ...*labels.Matcher) ([]string, error) {
	t.Helper()
	u, err := url.Parse(server + "/api/v1/read")
	if err != nil {
		t.Fatal(err)
	}
	types := []prompb.ReadRequest_ResponseType{prompb.ReadRequest_SAMPLES}
	if chunked {
		types = []prompb.ReadRequest_ResponseType{prompb.ReadRequest_STREAMED_XOR_CHUNKS, prompb.ReadRequest_SAMPLES}
	}
	client, err := remote.NewReadClient("x", &remote.ClientConfig{
		URL: &config_util.URL{URL: u}, Timeout: model.Duration(10 * time.Second), ChunkedReadLimit: 1 << 20, AcceptedResponseTypes: types,
	})
	if err != nil {
		t.Fatal(err)
	}
	q, err := remote.ToQuery(from, until, ms, hints)
	if err != nil {
		t.Fatal(err)
	}
	set, err := client.Read(t.Context(), q, true)
	if err != nil {
		return nil, err
	}
	var all []string
	last := ""
	for set.Next() {
		s := set.At()
		// A series that comes in several frames is one to the client, too.
		if name := s.Labels().String(); len(all) == 0 || name != last {
			last = name
			all = append(all, name)
		}
		samples, err := readSamples(s.Iterator(nil), chunked)
		if err != nil {
			return all, err
		}
		all[len(all)-1] += samples
	}
	return all, set.Err()
}

// readSamples shows samples to the bit. In chunks, whether a histogram says that it follows the one before
// depends on where they begin; that a histogram is a gauge does not.
func readSamples(it chunkenc.Iterator, chunked bool) (text string, err error) {
	hint := func(h histogram.CounterResetHint) histogram.CounterResetHint {
		if chunked && h != histogram.GaugeType {
			return histogram.UnknownCounterReset
		}
		return h
	}
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		switch kind {
		case chunkenc.ValFloat:
			at, v := it.At()
			text += fmt.Sprintf("\n%d:%x", at, math.Float64bits(v))
		case chunkenc.ValHistogram:
			at, h := it.AtHistogram(nil)
			text += fmt.Sprintf("\n%d:%s/%d", at, h, hint(h.CounterResetHint))
		case chunkenc.ValFloatHistogram:
			at, h := it.AtFloatHistogram(nil)
			text += fmt.Sprintf("\n%d:%s/%d", at, h, hint(h.CounterResetHint))
		}
	}
	return text, it.Err()
}

func TestRemoteReadClient(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	p := newPair(t, load(t, now))
	end := timestamp.FromTime(now)
	for _, c := range []struct {
		name        string
		from, until int64
		hints       *storage.SelectHints
		matchers    []*labels.Matcher
		differs     map[bool]string // by chunked
	}{
		{"floats", end - 600_000, end, nil, match("=", "__name__", "http_requests_total"), nil},
		{"specials", end - 900_000, end, nil, match("=", "__name__", "special"), map[bool]string{false: "-0 stays what it is"}},
		{"utf8", end - 900_000, end, nil, match("=~", "__name__", "dot.*"), nil},
		{"stale", end - 900_000, end, nil, match("=~", "__name__", "gone.*"), nil},
		{"native", end - 900_000, end, nil, match("=", "__name__", "native"), nil},
		{"custom", end - 900_000, end, nil, match("=", "__name__", "custom"), nil},
		{"odd", end - 900_000, end, nil, match("=", "__name__", "odd"), nil},
		{"mixed", end - 900_000, end, nil, match("=", "__name__", "mixed"), nil},
		{"long", end - 1_500_000, end, nil, match("=", "__name__", "long"), nil},
		{"too long", end - 3_000_000, end, nil, match("=", "__name__", "long"), nil},
		{"long native", end - 700_000, end, nil, match("=", "__name__", "long_native"), nil},
		{"not", end - 15_000, end, nil, match("!=", "__name__", "long"), nil},
		{"not like", end - 15_000, end, nil, match("!~", "job", "j.*"), nil},
		{"all", end - 15_000, end, nil, match("=~", "__name__", ".*"), nil},
		{"no matcher", end, end, nil, nil, nil},
		{"nothing", end, end, nil, match("=", "x", "y"), nil},
		{"backwards", end, end - 1000, nil, match("=", "__name__", "long"), nil},
		{"hints", end - 900_000, end, &storage.SelectHints{Start: end - 60_000, End: end - 30_000, Step: 1000, Func: "rate", Range: 30_000, Grouping: []string{"job"}, By: true}, match("=", "__name__", "http_requests_total"), nil},
		{"series", end - 900_000, end, &storage.SelectHints{Start: end - 60_000, End: end, Func: "series"}, match("=", "job", "j0"), map[bool]string{true: "series that were asked for without samples come without"}},
	} {
		for _, chunked := range []bool{false, true} {
			theirs, theirErr := readAs(t, p.prometheus, chunked, c.from, c.until, c.hints, c.matchers...)
			ours, ourErr := readAs(t, p.shale, chunked, c.from, c.until, c.hints, c.matchers...)
			d := cmp.Diff(theirs, ours)
			if (theirErr == nil) != (ourErr == nil) || theirErr != nil && cutAddress(theirErr) != cutAddress(ourErr) {
				d += fmt.Sprintf("error %v, want %v", ourErr, theirErr)
			}
			if len(theirs) == 0 && theirErr == nil && c.name != "nothing" && c.name != "no matcher" && c.name != "backwards" {
				t.Errorf("%s: nothing to compare", c.name)
			}
			if why := c.differs[chunked]; d != "" && why == "" {
				t.Errorf("%s, chunked %t: %s", c.name, chunked, d)
			} else if d == "" && why != "" {
				t.Errorf("%s, chunked %t: does not differ any more: %s", c.name, chunked, why)
			}
		}
	}
}

// cutAddress leaves the address of the server out of an error.
func cutAddress(err error) string {
	text := err.Error()
	for i := 0; i < len(text); i++ {
		if len(text) > i+5 && text[i:i+5] == "HTTP " || len(text) > i+8 && text[i:i+8] == "exceeded" {
			return text[i:]
		}
	}
	return text
}

func match(op, name, value string) []*labels.Matcher {
	ops := map[string]labels.MatchType{"=": labels.MatchEqual, "!=": labels.MatchNotEqual, "=~": labels.MatchRegexp, "!~": labels.MatchNotRegexp}
	return []*labels.Matcher{labels.MustNewMatcher(ops[op], name, value)}
}

// framed shows the samples of frames, by query and series.
func framed(t *testing.T, body string) string {
	t.Helper()
	text, last := "", ""
	for r := remote.NewChunkedReader(strings.NewReader(body), 1<<20, nil); ; {
		var frame prompb.ChunkedReadResponse
		err := r.NextProto(&frame)
		if err == io.EOF {
			return text
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range frame.ChunkedSeries {
			if name := fmt.Sprintf("\nquery %d: %v", frame.QueryIndex, s.Labels); name != last {
				text, last = text+name, name
			}
			for _, c := range s.Chunks {
				chunk, err := chunkenc.FromData(chunkenc.Encoding(c.Type), c.Data)
				if err != nil {
					t.Fatal(err)
				}
				samples, err := readSamples(chunk.Iterator(nil), true)
				if err != nil {
					t.Fatal(err)
				}
				text += samples
			}
		}
	}
}

func TestRemoteReadBodies(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	p := newPair(t, load(t, now))
	end := timestamp.FromTime(now)
	name := func(v string) []*prompb.LabelMatcher { return []*prompb.LabelMatcher{{Name: "__name__", Value: v}} }
	encode := func(r *prompb.ReadRequest) []byte {
		b, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return snappy.Encode(nil, b)
	}
	two := []*prompb.Query{
		{StartTimestampMs: end - 60_000, EndTimestampMs: end, Matchers: name("native")}, {StartTimestampMs: end - 60_000, EndTimestampMs: end, Matchers: name("nothing")},
		{StartTimestampMs: end - 60_000, EndTimestampMs: end, Matchers: name("http_requests_total")},
	}
	for _, c := range []struct {
		name    string
		body    []byte
		differs string
	}{
		{"no body", nil, ""},
		{"not snappy", []byte("xxxxxxxxxxxxxxxxxx"), ""},
		{"not protobuf", snappy.Encode(nil, []byte("xxxxxxxxxxxxxxxxxx")), ""},
		{"a lie about the length", []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}, "the limit is another"},
		{"no query", encode(&prompb.ReadRequest{}), ""},
		{"several", encode(&prompb.ReadRequest{Queries: two}), ""},
		{"several, chunked", encode(&prompb.ReadRequest{Queries: two, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{1}}), ""},
		{"unknown type first", encode(&prompb.ReadRequest{Queries: two, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{7, 0}}), ""},
		{"unknown type", encode(&prompb.ReadRequest{Queries: two, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{7}}), "the text of the error"},
		{"bad regexp", encode(&prompb.ReadRequest{Queries: []*prompb.Query{{Matchers: []*prompb.LabelMatcher{{Type: 2, Name: "a", Value: "("}}}}}), "the fault is the client's: 400 and not 500"},
		{"unknown matcher", encode(&prompb.ReadRequest{Queries: []*prompb.Query{{Matchers: []*prompb.LabelMatcher{{Type: 9, Name: "a", Value: "("}}}}}), "the fault is the client's: 400 and not 500"},
		{"one frame for each few chunks", encode(&prompb.ReadRequest{AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{1}, Queries: []*prompb.Query{
			{StartTimestampMs: end - 3_000_000, EndTimestampMs: end, Matchers: name("long")}}}), "Prometheus gives the chunks that it has, which do not begin with the query"},
	} {
		var replies [2]reply
		for i, server := range []string{p.prometheus, p.shale} {
			req, err := http.NewRequest("POST", server+"/api/v1/read", bytes.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			replies[i] = exchange(t, req)
		}
		theirs, ours := replies[0], replies[1]
		d := ""
		if theirs.status != ours.status {
			d = fmt.Sprintf("status %d, want %d", ours.status, theirs.status)
		}
		for _, h := range []string{"Content-Type", "Content-Encoding"} {
			// Upstream sets them before it knows of errors.
			if theirs.status == 200 && theirs.header.Get(h) != ours.header.Get(h) {
				d += fmt.Sprintf("%s %q, want %q", h, ours.header.Get(h), theirs.header.Get(h))
			}
		}
		if c.name == "several, chunked" {
			// Where Prometheus cuts chunks depends on the time of day.
			theirs.body, ours.body = framed(t, theirs.body), framed(t, ours.body)
		}
		if theirs.body != ours.body {
			d += fmt.Sprintf("\n%.300q, want\n%.300q", ours.body, theirs.body)
		}
		if d != "" && c.differs == "" {
			t.Errorf("%s: %s", c.name, d)
		} else if d == "" && c.differs != "" {
			t.Errorf("%s: does not differ any more", c.name)
		}
	}
}
