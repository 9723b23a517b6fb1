package prom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/readtest"
)

func TestReadLimits(t *testing.T) {
	load := []string{`up{job="a"} 900:1 930:1 960:1 990:1`, `up{job="b"} 900:1 930:1 960:1`}
	limited := func(l api.Limits, maxSamples int) *world {
		w := newWorld(t, func(o *prom.Options) { o.Limits, o.MaxReadSamples = l, maxSamples })
		w.MustLoad(t, "anonymous", load...)
		return w
	}
	both := func(w *world, code int, words string) {
		t.Helper()
		for _, kind := range []prompb.ReadRequest_ResponseType{asSamples, asChunks} {
			refused(t, w.read(readBody(t, kind, of("up"))), code, words)
		}
	}
	both(limited(api.Limits{MaxSeries: 1}, 0), 422, "query.max-series")
	both(limited(api.Limits{MaxSamples: 6}, 0), 422, "query.max-samples")
	both(limited(api.Limits{MaxBytes: 3000}, 0), 422, "query.max-bytes")
	both(limited(api.Limits{Timeout: time.Nanosecond}, 0), 503, "deadline")
	refused(t, limited(api.Limits{}, 6).read(readBody(t, asSamples, of("up"))), 400, "exceeded sample limit (6)")
	w := limited(api.Limits{}, 7)
	decodeSamples(t, w.read(readBody(t, asSamples, of("up"), of("up"))))

	w = limited(api.Limits{MaxBodyBytes: 300}, 0)
	refused(t, w.read(make([]byte, 301)), 413, "larger than 300 bytes")
	refused(t, w.read(snappy.Encode(nil, make([]byte, 301))), 400, "decoded length 301 exceeds limit 300")
	w = limited(api.Limits{}, 0)
	var many []*prompb.Query
	for range 257 {
		many = append(many, &prompb.Query{})
	}
	refused(t, w.read(readBody(t, asSamples, many...)), 400, "257 queries; at most 256")
	// A small body must not become a large request.
	w = limited(api.Limits{MaxBytes: 1 << 20}, 0)
	refused(t, w.read(snappy.Encode(nil, bytes.Repeat([]byte{0x0a, 0}, 1<<14))), 422, "query.max-bytes")
	for _, c := range []struct {
		name string
		body []byte
		word string
	}{
		{"empty", nil, "snappy"}, {"no snappy", []byte("hello, world"), "snappy"}, {"no protobuf", snappy.Encode(nil, []byte("hello")), "proto: ReadRequest"},
		{"a bad expression", readBody(t, asSamples, of("(")), "error parsing regexp"},
		{"a bad matcher", readBody(t, asSamples, &prompb.Query{Matchers: []*prompb.LabelMatcher{{Type: 8}}}), "invalid matcher type"},
		{"a bad type", readBody(t, 9, of("up")), "server does not support any of the requested response types: [9]"},
		{"many bad types", snappy.Encode(nil, bytes.Repeat([]byte{0x10, 9}, 1000)), "response types: [9 9 9 9 9 9 9 9 9 9] and 990 more; supported"},
	} {
		r := w.read(c.body)
		if refused(t, r, 400, c.word); t.Failed() {
			t.Fatalf("%s: %.1000s", c.name, apitest.Show(r))
		}
	}
	refused(t, w.read(readBody(t, asSamples, of("up")), "X-Scope-OrgID: a/b"), 400, "tenant ID")
}

func TestReadErrorsOfTheStore(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{fmt.Errorf("%w: disk", model.ErrTransient), 503}, {fmt.Errorf("%w: head", model.ErrClosed), 503}, {fmt.Errorf("%w: page 7", model.ErrCorrupt), 500},
		{fmt.Errorf("%w: x", model.ErrLimit), 422}, {errors.New("something"), 422}, {context.DeadlineExceeded, 503},
	} {
		w := newWorld(t, nil)
		w.MustLoad(t, "anonymous", `up{job="a"} 990:1`, `up{job="b"} 990:1`)
		for _, f := range []readtest.Failure{{Select: c.err}, {Next: c.err}, {Rows: c.err}} {
			w.memory.Fail(f)
			refused(t, w.read(readBody(t, asSamples, of("up"))), c.code, c.err.Error())
			refused(t, w.read(readBody(t, asChunks, of("up"))), c.code, c.err.Error())
			refused(t, w.Get("/federate?match[]=up"), c.code, c.err.Error())
		}
	}
}

// failing is a series whose samples fail after some.
type failing struct {
	storage.Series
	err error
}
