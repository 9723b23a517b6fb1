package receive

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/body"
)

// Forms are what a protocol takes besides protobuf, for the hints in errors.
type Forms struct {
	// JSON says that bodies may be JSON.
	JSON bool
	// Block says that protobuf without Content-Encoding is a snappy block.
	Block bool
	// Encodings are the values of Content-Encoding.
	Encodings []string
}

// hint adds to an error about the content of a body what the body looks like, if that is not what the headers
// say, and the header that would be right.
func (f *Forms) hint(err error, h http.Header, sent []byte) error {
	var refused *write.Refused
	if !errors.Is(err, model.ErrInvalid) || errors.As(err, &refused) {
		return err
	}
	json := strings.HasPrefix(h.Get("Content-Type"), "application/json")
	encoding := h.Get("Content-Encoding")
	compressed := func(name string) string {
		switch {
		case encoding == name:
			return ""
		case !slices.Contains(f.Encodings, name):
			return fmt.Sprintf("the body looks like %s; expected %s", name, strings.Join(f.Encodings, ", "))
		}
		return fmt.Sprintf("the body looks like %s: send it with Content-Encoding: %s", name, name)
	}
	text := ""
	switch look := body.LookOf(sent); {
	case look == body.LooksGzip:
		text = compressed("gzip")
	case look == body.LooksZstd:
		text = compressed("zstd")
	case look == body.LooksLZ4:
		text = compressed("lz4")
	case look == body.LooksJSON && json && encoding != "":
		text = "the body looks like JSON that is not compressed: send it without Content-Encoding"
	case look == body.LooksJSON && !json && f.JSON:
		text = "the body looks like JSON: send it with Content-Type: application/json"
	case look == body.LooksJSON && !json:
		text = "the body looks like JSON; expected protobuf in a snappy block"
	case (look == body.LooksBlock || look == body.LooksProtobuf) && json:
		text = "the body looks like protobuf: send it with Content-Type: application/x-protobuf"
	case look == body.LooksProtobuf && f.Block:
		text = "the body looks like protobuf that is not compressed: send it as a snappy block"
	case look == body.LooksBlock && !f.Block:
		text = "the body looks like a snappy block: send protobuf that is not compressed, or with Content-Encoding " + strings.Join(f.Encodings, ", ")
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, text)
}
