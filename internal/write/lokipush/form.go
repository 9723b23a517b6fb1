package lokipush

import (
	"fmt"
	"mime"
	"net/http"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/receive"
)

// message is the kind of a body.
type message int

const (
	protobuf message = iota
	jsonMessage
	messages // the number of kinds
)

// String returns the value of the metrics' label form.
func (m message) String() string {
	return [messages]string{"protobuf", "json"}[m]
}

// form describes a body, as its headers declare it.
type form struct {
	message  message
	encoding body.Encoding
}

var forms = receive.Forms{JSON: true, Block: true, Encodings: []string{"snappy", "gzip", "deflate", "zstd"}}

// formOf reads the headers. As in Loki, every body that is not JSON is protobuf, whatever its
// Content-Type, and a protobuf body is a snappy block even if no header says so. Unlike in Loki,
// Content-Type may be missing.
func formOf(h http.Header) (f form, err error) {
	if ct := h.Get("Content-Type"); ct != "" {
		kind, _, err := mime.ParseMediaType(ct)
		switch {
		case err != nil:
			return f, fmt.Errorf("%w: Content-Type %.200q: %w", model.ErrInvalid, ct, err)
		case kind == "application/json":
			f.message = jsonMessage
		}
	}
	switch ce := h.Get("Content-Encoding"); ce {
	case "":
		if f.message == protobuf {
			f.encoding = body.Snappy
		}
	case "snappy":
		f.encoding = body.Snappy
	case "gzip":
		f.encoding = body.Gzip
	case "deflate":
		f.encoding = body.Deflate
	case "zstd":
		f.encoding = body.Zstd
	default:
		return f, fmt.Errorf("%w: Content-Encoding %.200q not supported; expected snappy, gzip, deflate or zstd", model.ErrInvalid, ce)
	}
	return f, nil
}

// isBlock reports whether a protobuf body that was compressed with gzip, deflate or zstd is a snappy
// block in addition, as Loki expects with gzip and deflate. A push of lines begins with the tag of its
// first stream. A snappy block that begins with the same byte would decode to 10 bytes, which is too
// short for a push.
func isBlock(decoded []byte) bool {
	const streamTag = 0x0a
	return len(decoded) > 0 && decoded[0] != streamTag
}
