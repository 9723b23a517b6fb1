package answer

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/shaledb/shale/internal/model"
)

// Key is the hash of what tells a request from others.
type Key [sha256.Size]byte

// Answer is a successful response. Its content never changes.
type Answer struct {
	Header http.Header // without those that each request has of its own
	Body   []byte
	// Tenants are those whose data it depends on, Clock is the number of the last change before it was
	// computed, and Reach is what it depends on.
	Tenants []string
	Clock   uint64
	Reach   *model.Reach
	// Computed is when it was.
	Computed time.Time

	mu      sync.Mutex
	encoded [len(encodings)][]byte
}

// Encoding is a name in the headers Accept-Encoding and Content-Encoding; "": the body as it is.
type Encoding string

// The encodings.
const (
	Identity Encoding = ""
	Gzip     Encoding = "gzip"
	Zstd     Encoding = "zstd"
)

var encodings = [...]Encoding{Gzip, Zstd}

// MinEncoded is the size from which a body is compressed. Below it, the header of the encoding and its state
// cost more than they save.
const MinEncoded = 1400

// Encode returns the body in an encoding. It makes each encoding once. grown is how many bytes the answer has
// taken more.
func (a *Answer) Encode(e Encoding) (body []byte, grown int64) {
	if e == Identity {
		return a.Body, 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, name := range encodings {
		if name != e {
			continue
		}
		if a.encoded[i] == nil {
			a.encoded[i] = compress(e, a.Body)
			grown = int64(cap(a.encoded[i]))
		}
		return a.encoded[i], grown
	}
	return a.Body, 0
}

func compress(e Encoding, body []byte) []byte {
	out := bytes.NewBuffer(make([]byte, 0, len(body)/4))
	if e == Zstd {
		// One goroutine and a small window: the encoder is made for one body.
		z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
		return bytes.Clone(z.EncodeAll(body, out.Bytes()))
	}
	z, _ := gzip.NewWriterLevel(out, gzip.BestSpeed)
	_, _ = z.Write(body) // a buffer does not fail
	_ = z.Close()
	return bytes.Clone(out.Bytes())
}

// answerBytes is about the memory of an answer besides its body and texts, with its places in the tier.
const answerBytes = 900

// bytes returns the memory of an answer without encodings.
func (a *Answer) bytes() int64 {
	n := answerBytes + cap(a.Body)
	for name, values := range a.Header {
		n += len(name) + len(strings.Join(values, "")) + 64
	}
	for _, t := range a.Tenants {
		n += 2 * len(t) // also in the name of the owner
	}
	return int64(n)
}
