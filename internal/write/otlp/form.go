package otlp

import (
	"mime"
	"net/http"

	"github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/receive"
)

// form describes a body, as its headers declare it.
type form struct {
	json     bool
	encoding body.Encoding
}

const supported = "expected Content-Type application/x-protobuf or application/json, and Content-Encoding gzip, zstd, lz4 or deflate"

var forms = receive.Forms{JSON: true, Encodings: []string{"gzip", "zstd", "lz4", "deflate"}}

// formOf reads the headers. Its error is a 415.
func formOf(h http.Header) (f form, err error) {
	ct := h.Get("Content-Type")
	switch kind, _, err := mime.ParseMediaType(ct); {
	case err != nil:
		return f, receive.Unsupported("Content-Type", ct, supported)
	case kind == "application/json":
		f.json = true
	case kind != "application/x-protobuf":
		return f, receive.Unsupported("Content-Type", ct, supported)
	}
	switch ce := h.Get("Content-Encoding"); ce {
	case "", "identity":
	case "gzip":
		f.encoding = body.Gzip
	case "zstd":
		f.encoding = body.Zstd
	case "lz4":
		f.encoding = body.LZ4
	case "deflate", "zlib":
		f.encoding = body.Deflate
	default:
		return f, receive.Unsupported("Content-Encoding", ce, supported)
	}
	return f, nil
}

// String returns the value of the metrics' label form.
func (f form) String() string {
	if f.json {
		return "json"
	}
	return "protobuf"
}
