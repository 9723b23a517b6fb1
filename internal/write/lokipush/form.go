package lokipush

import (
	"fmt"
	"mime"
	"net/http"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/body"
)

// message is what a body holds.
type message int

const (
	protobuf message = iota
	jsonMessage
	messages // how many there are
)

// String returns the word for the metrics.
func (m message) String() string {
	return [messages]string{"protobuf", "json"}[m]
}

// form is what the headers say of a body.
type form struct {
	message  message
	encoding body.Encoding
}

// formOf reads the headers. As in Loki, what is not JSON is protobuf, whatever it is called, and a body that is protobuf is
// a snappy block, whether a header says so or not; but no Content-Type is needed.
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
		return f, fmt.Errorf("%w: Content-Encoding %.200q not supported; supported are snappy, gzip, deflate and zstd", model.ErrInvalid, ce)
	}
	return f, nil
}

// isBlock reports whether a body of protobuf that was compressed by gzip, deflate or zstd is a snappy block once more, as
// Loki wants it of gzip and deflate. A push of lines begins with the tag of its first stream; a snappy block that begins so
// would have 10 decoded bytes, and no push is that short.
func isBlock(decoded []byte) bool {
	const streamTag = 0x0a
	return len(decoded) > 0 && decoded[0] != streamTag
}
