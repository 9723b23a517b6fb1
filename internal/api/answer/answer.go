package answer

import (
	"bytes"
	"crypto/sha256"
	"io"
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
	Body   *Body
	// Tenants are those whose data it depends on, Clock is the number of the last change before it was
	// computed, and Reach is what it depends on.
	Tenants []string
	Clock   uint64
	Reach   *model.Reach
	// Computed is when it was.
	Computed time.Time
}

// Encoding is a name in the headers Accept-Encoding and Content-Encoding; "": the body as it is.
type Encoding string

// The encodings.
const (
	Identity Encoding = ""
	Gzip     Encoding = "gzip"
	Zstd     Encoding = "zstd"
)

// MinEncoded is the size from which a body is compressed. Below it, the header of the encoding and its state
// cost more than they save.
const MinEncoded = 1400

// Body is the body of a response, compressed by gzip, which most clients accept. Numbers at regular times
// shrink to a tenth, so that the panels of a dashboard fit the tier. As they were, a day in steps of a minute
// took so much room that each panel pushed out the next one.
type Body struct {
	// Size is that of the text.
	Size int

	text, gzip []byte // one of them

	mu   sync.Mutex
	zstd []byte // made when a client asks for it
}

// NewBody compresses a text, which it may keep.
func NewBody(text []byte) *Body {
	if len(text) < MinEncoded {
		return &Body{Size: len(text), text: bytes.Clone(text)}
	}
	out := bytes.NewBuffer(make([]byte, 0, len(text)/8))
	z := writers.Get().(*gzip.Writer)
	defer writers.Put(z)
	z.Reset(out)
	_, _ = z.Write(text) // a buffer does not fail
	_ = z.Close()
	return &Body{Size: len(text), gzip: bytes.Clone(out.Bytes())}
}

var (
	writers = sync.Pool{New: func() any { z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return z }}
	readers = sync.Pool{New: func() any { return new(gzip.Reader) }}
)

// Encoded returns the whole body in an encoding, or nil if it must be decompressed, by WriteTo. It makes an
// encoding once. grown is how many bytes the body has taken more.
func (b *Body) Encoded(e Encoding) (body []byte, grown int64) {
	switch {
	case e == Identity:
		return b.text, 0
	case e == Gzip || b.gzip == nil:
		return b.gzip, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.zstd == nil {
		text := bytes.NewBuffer(make([]byte, 0, b.Size))
		_, _ = b.WriteTo(text) // a buffer does not fail
		// One goroutine and a small window: the encoder is made for one body.
		z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
		b.zstd = bytes.Clone(z.EncodeAll(text.Bytes(), make([]byte, 0, len(b.gzip)+len(b.gzip)/4)))
		grown = int64(cap(b.zstd))
	}
	return b.zstd, grown
}

// WriteTo writes the text, piece by piece.
func (b *Body) WriteTo(w io.Writer) (int64, error) {
	if b.gzip == nil {
		n, err := w.Write(b.text)
		return int64(n), err
	}
	z := readers.Get().(*gzip.Reader)
	defer readers.Put(z)
	if err := z.Reset(bytes.NewReader(b.gzip)); err != nil {
		return 0, err
	}
	return z.WriteTo(w)
}

// answerBytes is about the memory of an answer besides its body and texts, with its places in the tier.
const answerBytes = 900

// bytes returns the memory of an answer without encodings.
func (a *Answer) bytes() int64 {
	n := answerBytes + cap(a.Body.text) + cap(a.Body.gzip)
	for name, values := range a.Header {
		n += len(name) + len(strings.Join(values, "")) + 64
	}
	for _, t := range a.Tenants {
		n += 2 * len(t) // also in the name of the owner
	}
	return int64(n)
}
