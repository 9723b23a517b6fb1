package promwrite

import (
	"mime"
	"net/http"
	"strings"

	bodies "github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/receive"
)

// version is a version of remote write, which determines the message in a body.
type version int

const (
	v1 version = 1 // prometheus.WriteRequest
	v2 version = 2 // io.prometheus.write.v2.Request
)

// String returns the version as it appears in metrics and docs.
func (v version) String() string {
	if v == v2 {
		return "2.0"
	}
	return "1.0"
}

const supported = "expected Content-Type application/x-protobuf, optionally with proto=prometheus.WriteRequest or proto=io.prometheus.write.v2.Request, and Content-Encoding snappy or zstd"

// form describes a body, as its headers declare it.
type form struct {
	version  version
	encoding bodies.Encoding
}

var forms = receive.Forms{Block: true, Encodings: []string{"snappy", "zstd"}}

// formOf reads the headers. Its error is a 415, which makes vmagent fall back from zstd to snappy. The
// version is valid even with an error if the headers name one.
func formOf(h http.Header) (f form, err error) {
	f.version = v1
	if ct := h.Get("Content-Type"); ct != "" {
		kind, params, err := mime.ParseMediaType(ct)
		if err != nil || kind != "application/x-protobuf" {
			return f, receive.Unsupported("Content-Type", ct, supported)
		}
		switch proto, given := params["proto"]; {
		case proto == "io.prometheus.write.v2.Request":
			f.version = v2
		case given && proto != "prometheus.WriteRequest":
			return f, receive.Unsupported("Content-Type", ct, supported)
		}
	}
	switch ce := h.Get("Content-Encoding"); {
	case ce == "" || strings.EqualFold(ce, "snappy"):
		f.encoding = bodies.Snappy
	case strings.EqualFold(ce, "zstd"):
		f.encoding = bodies.Zstd
	default:
		return f, receive.Unsupported("Content-Encoding", ce, supported)
	}
	return f, nil
}
