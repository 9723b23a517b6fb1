package otlp

import (
	"fmt"
	"mime"
	"net/http"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/body"
)

// form is what the headers say of a body.
type form struct {
	json     bool
	encoding body.Encoding
}

const supported = "supported are Content-Type application/x-protobuf and application/json, and Content-Encoding gzip, zstd, lz4 and deflate"

// formOf reads the headers. Its error is a 415.
func formOf(h http.Header) (f form, err error) {
	unsupported := func(name, value string) error {
		return &write.Refused{Status: http.StatusUnsupportedMediaType, Text: fmt.Sprintf("%s %.200q is not supported; %s", name, value, supported)}
	}
	ct := h.Get("Content-Type")
	switch kind, _, err := mime.ParseMediaType(ct); {
	case err != nil:
		return f, unsupported("Content-Type", ct)
	case kind == "application/json":
		f.json = true
	case kind != "application/x-protobuf":
		return f, unsupported("Content-Type", ct)
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
		return f, unsupported("Content-Encoding", ce)
	}
	return f, nil
}

// String returns the word for the metrics.
func (f form) String() string {
	if f.json {
		return "json"
	}
	return "protobuf"
}
