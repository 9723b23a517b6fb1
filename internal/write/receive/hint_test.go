package receive

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// TestHint: a protocol is not told to send what it does not take, and other errors stay as they are.
func TestHint(t *testing.T) {
	bad := fmt.Errorf("%w: bad", model.ErrInvalid)
	otlp := Forms{JSON: true, Encodings: []string{"gzip", "zstd", "lz4", "deflate"}}
	const protobuf, block, json = "\x0a\x04\x12\x02\x08\x01", "\x06\x14\x0a\x04\x12\x02\x08\x01", `{"resourceLogs":[]}`
	for _, c := range []struct {
		err                  error
		kind, encoding, body string
		want                 string
	}{
		{bad, "application/x-protobuf", "", json, "the body looks like JSON: send it with Content-Type: application/json"},
		{bad, "application/json", "", protobuf, "the body looks like protobuf: send it with Content-Type: application/x-protobuf"},
		{bad, "application/json", "", "\x1f\x8b\x08", "the body looks like gzip: send it with Content-Encoding: gzip"},
		{bad, "application/json", "", "\x04\x22\x4d\x18", "the body looks like lz4: send it with Content-Encoding: lz4"},
		{bad, "application/x-protobuf", "", block, "the body looks like a snappy block: send protobuf that is not compressed, or with Content-Encoding gzip, zstd, lz4, deflate"},
		{bad, "application/x-protobuf", "", protobuf, ""},
		{bad, "application/json", "", json, ""},
		{bad, "application/json", "gzip", "\x1f\x8b\x08", ""},
		{bad, "application/json", "", "", ""},
		{&write.Refused{Status: 413, Text: "too large"}, "application/x-protobuf", "", json, ""},
		{model.ErrTransient, "application/x-protobuf", "", json, ""},
	} {
		got := otlp.hint(c.err, http.Header{"Content-Type": {c.kind}, "Content-Encoding": {c.encoding}}, []byte(c.body))
		if want := strings.TrimSuffix(c.err.Error()+"; "+c.want, "; "); got.Error() != want {
			t.Errorf("%s %s %q: %v, want %s", c.kind, c.encoding, c.body, got, want)
		}
	}
}
