package graphite

import (
	"encoding/hex"
	"testing"
)

// TestBinary: the bytes of binary formats. Python's pickle and msgpack read both as [{'path': 'a', 'is_leaf':
// False}, {'path': 'a', 'is_leaf': True, 'intervals': [(500, 901)]}], with a list for the pair in msgpack.
func TestBinary(t *testing.T) {
	w := newWorld(t, nil)
	w.MustLoad(t, "anonymous", "a", "a.b")
	for _, c := range []struct{ format, contentType, want string }{
		{"pickle", "application/pickle", "80025d287d285804000000706174685801000000615807000000" + "69735f6c65616689757d285804000000706174685801000000615807000000" +
			"69735f6c656166885809000000696e74657276616c735d288a08f4010000000000008a088503000000000000866575652e"},
		{"msgpack", "application/x-msgpack", "9282a470617468a161a769735f6c656166c283a470617468a161a769735f6c656166c3a9696e74657276616c739192d101f4d10385"},
	} {
		r := w.Get("/metrics/find", "query=a", "format="+c.format)
		if got := hex.EncodeToString(r.Body.Bytes()); got != c.want || r.Header().Get("Content-Type") != c.contentType {
			t.Errorf("%s: %s %s\nwant %s", c.format, r.Header().Get("Content-Type"), got, c.want)
		}
	}
}
