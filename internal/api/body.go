package api

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/shaledb/shale/internal/api/answer"
	"github.com/shaledb/shale/internal/model"
)

// FlushBytes is the size of the pieces in which a response is sent.
const FlushBytes = 64 << 10

// maxKeepBytes bounds the buffers that return to the pool.
const maxKeepBytes = 4 * FlushBytes

// Body writes a response through a pooled buffer, compressed if the client accepts gzip.
type Body struct {
	W   http.ResponseWriter
	Buf []byte // gathered and not sent yet
	// Status is 0 until the header has been sent.
	Status int
	// count counts the request by its status, before the client can see the status. May be nil.
	count func(status int)
	// Broken says that the client got only a part of the body.
	Broken bool
	// ContentType is the type of the body.
	ContentType string

	gzip    *gzip.Writer
	isHead  bool
	accepts bool // the client accepts gzip
	memory  *memory
	timeout time.Duration // for the client to read the response
	until   time.Time     // the end of it
	// processor is that of the request, which waits when the client does not read. It may be nil.
	processor *model.Processor
	turn      *unread // nil: the request has none
	// quota is settled when the header is sent; nil: there is none.
	quota *model.Quota
	// cost is stated when the header is sent, so a response in several pieces states the cost of the first;
	// nil: no statement.
	cost *model.Cost
}

// memory pools what responses need.
type memory struct {
	buffers, gzip sync.Pool
}

func newMemory() *memory {
	return &memory{
		buffers: sync.Pool{New: func() any { b := make([]byte, 0, FlushBytes+FlushBytes/4); return &b }},
		gzip:    sync.Pool{New: func() any { z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return z }},
	}
}

// NewBody returns the body of a response outside of a pipeline, for tests of encoders.
func NewBody(w http.ResponseWriter, r *http.Request) *Body {
	b := newBody(w, r, newMemory(), time.Minute)
	b.acceptEncoding(r)
	return b
}

func newBody(w http.ResponseWriter, r *http.Request, m *memory, timeout time.Duration) *Body {
	b := m.buffers.Get().(*[]byte)
	return &Body{W: w, Buf: (*b)[:0], isHead: r.Method == http.MethodHead, memory: m, timeout: timeout}
}

// acceptEncoding lets the response be compressed if the client accepts that.
func (b *Body) acceptEncoding(r *http.Request) {
	b.W.Header().Add("Vary", "Accept-Encoding")
	b.accepts = accepts(r.Header.Values("Accept-Encoding"), "gzip")
}

// accepts reports whether an Accept-Encoding header names an encoding.
func accepts(values []string, encoding string) bool {
	for _, v := range values {
		for item := range strings.SplitSeq(v, ",") {
			name, params, _ := strings.Cut(item, ";")
			if !strings.EqualFold(strings.TrimSpace(name), encoding) {
				continue
			}
			q, found := strings.CutPrefix(strings.TrimSpace(params), "q=")
			if !found {
				return true
			}
			weight, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			return err == nil && weight > 0
		}
	}
	return false
}

// release gives the memory back.
func (b *Body) release() {
	if b.gzip != nil {
		b.gzip.Reset(nil)
		b.memory.gzip.Put(b.gzip)
		b.gzip = nil
	}
	if cap(b.Buf) <= maxKeepBytes {
		buf := b.Buf[:0]
		b.memory.buffers.Put(&buf)
	}
	b.Buf = nil
}

// Spill sends the buffer if it is large enough for a piece.
func (b *Body) Spill() {
	if len(b.Buf) >= FlushBytes {
		b.Flush(http.StatusOK, false)
	}
}

// Flush sends the buffer; last says that nothing follows.
func (b *Body) Flush(status int, last bool) {
	b.send(status, b.Buf, last)
	b.Buf = b.Buf[:0]
}

// send sends a piece of the body, which it does not keep; last says that nothing follows.
func (b *Body) send(status int, piece []byte, last bool) {
	if b.Status == 0 {
		b.begin(status, last, len(piece))
	}
	if b.Broken || b.isHead {
		return
	}
	var to io.Writer = b.W
	if b.gzip != nil {
		to = b.gzip
	}
	b.processor.Leave()
	b.Broken = b.turn.write(last, b.until, func() error {
		if _, err := to.Write(piece); err != nil || !last || b.gzip == nil {
			return err
		}
		return b.gzip.Close()
	}) != nil
	b.processor.Enter(context.Background())
}

// sendEncoded sends a whole body in an encoding.
func (b *Body) sendEncoded(status int, enc answer.Encoding, body []byte) {
	h := b.W.Header()
	if enc != answer.Identity {
		h.Set("Content-Encoding", string(enc))
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	b.bound()
	b.sendHeader(status)
	if b.isHead {
		return
	}
	if _, err := b.W.Write(body); err != nil {
		b.Broken = true
	}
}

// sendText decompresses a body and sends it, with its header.
func (b *Body) sendText(status int, body *answer.Body) {
	b.bound()
	b.sendHeader(status)
	if b.isHead {
		return
	}
	if _, err := body.WriteTo(b.W); err != nil {
		b.Broken = true
	}
}

// bound bounds the time that the client takes to read the response: a client that does not read holds its
// memory and a place among the running queries. Only the writers of tests have no deadline.
func (b *Body) bound() {
	b.until = time.Now().Add(b.timeout)
	_ = http.NewResponseController(b.W).SetWriteDeadline(b.until)
}

// begin sends the header. size is that of the first piece, or of the whole.
func (b *Body) begin(status int, last bool, size int) {
	b.bound()
	header := b.W.Header()
	header.Set("Content-Type", b.ContentType)
	switch {
	case b.accepts && !(last && size < answer.MinEncoded):
		header.Set("Content-Encoding", "gzip")
		b.gzip = b.memory.gzip.Get().(*gzip.Writer)
		b.gzip.Reset(b.W)
	case last:
		header.Set("Content-Length", strconv.Itoa(size))
	}
	b.sendHeader(status)
}

// sendHeader sends the status and the header.
func (b *Body) sendHeader(status int) {
	if b.cost != nil {
		b.W.Header().Set("Shale-Cost", costHeader(b.cost))
		for _, w := range b.cost.Warnings.All() {
			b.W.Header().Add("Shale-Warning", strings.Join(strings.Fields(w), " "))
		}
	}
	if b.quota != nil {
		b.quota.Settle()
	}
	b.Status = status
	if b.count != nil {
		b.count(status)
	}
	b.W.WriteHeader(status)
}

// Warnings returns what the user of the response must know.
func (b *Body) Warnings() []string {
	if b.cost == nil {
		return nil
	}
	return b.cost.Warnings.All()
}

// SendText sends a text as the whole response. Browsers must not guess another type.
func (b *Body) SendText(status int, text string) {
	b.ContentType = "text/plain; charset=utf-8"
	b.W.Header().Set("X-Content-Type-Options", "nosniff")
	b.Raw(text)
	b.Flush(status, true)
}
