package api

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/shaledb/shale/internal/model"
)

// FlushBytes is the size of the pieces in which an answer goes out.
const FlushBytes = 64 << 10

const (
	// minGzipBytes is the size from which an answer is compressed: below, the frame of gzip and its state cost more than
	// the bytes.
	minGzipBytes = 1400
	maxKeepBytes = 4 * FlushBytes
)

// Body writes an answer through a pooled buffer, compressed if the client takes that.
type Body struct {
	W   http.ResponseWriter
	Buf []byte // what has gathered and was not sent
	// Status is 0 until the header has been sent.
	Status int
	// Accepts says that the answer is compressed if it is long enough: the client takes gzip.
	Accepts bool
	// Broken says that the client did not get all of it.
	Broken bool
	// ContentType is that of what is sent; application/json if empty.
	ContentType string

	gzip    *gzip.Writer
	isHead  bool
	memory  *Memory
	timeout time.Duration // for the client to take the answer
	// cost is stated when the header is sent: of an answer in pieces, what the first of them cost.
	cost *model.Cost
}

// Memory is what the answers of a handler use again.
type Memory struct {
	buffers, gzip sync.Pool
}

// NewMemory returns memory for the answers of one handler.
func NewMemory() *Memory {
	return &Memory{
		buffers: sync.Pool{New: func() any { b := make([]byte, 0, FlushBytes+FlushBytes/4); return &b }},
		gzip:    sync.Pool{New: func() any { z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return z }},
	}
}

// NewBody returns the answer to a request. The client has timeout to take it; cost is stated with it.
func NewBody(w http.ResponseWriter, r *http.Request, m *Memory, timeout time.Duration, cost *model.Cost) *Body {
	b := m.buffers.Get().(*[]byte)
	w.Header().Add("Vary", "Accept-Encoding")
	return &Body{
		W: w, Buf: (*b)[:0], Accepts: acceptsGzip(r.Header.Values("Accept-Encoding")), isHead: r.Method == http.MethodHead,
		memory: m, timeout: timeout, cost: cost,
	}
}

// acceptsGzip reads an Accept-Encoding header.
func acceptsGzip(values []string) bool {
	for _, v := range values {
		for item := range strings.SplitSeq(v, ",") {
			name, params, _ := strings.Cut(item, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
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

// Release gives the memory back.
func (b *Body) Release() {
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

// Spill sends what has gathered if that is enough for a piece.
func (b *Body) Spill() {
	if len(b.Buf) >= FlushBytes {
		b.Flush(http.StatusOK, false)
	}
}

// Flush sends what has gathered; last says that nothing follows.
func (b *Body) Flush(status int, last bool) {
	if b.Status == 0 {
		b.begin(status, last)
	}
	if !b.Broken && !b.isHead {
		var to io.Writer = b.W
		if b.gzip != nil {
			to = b.gzip
		}
		if _, err := to.Write(b.Buf); err != nil {
			b.Broken = true
		}
	}
	b.Buf = b.Buf[:0]
	if last && b.gzip != nil && !b.Broken && !b.isHead {
		b.Broken = b.gzip.Close() != nil
	}
}

func (b *Body) begin(status int, last bool) {
	b.Status = status
	// A client that does not read holds the memory of the answer and a place among the running queries. A writer that
	// knows no deadline is one of a test.
	_ = http.NewResponseController(b.W).SetWriteDeadline(time.Now().Add(b.timeout))
	header := b.W.Header()
	b.StateCost()
	if b.ContentType == "" {
		b.ContentType = "application/json"
	}
	header.Set("Content-Type", b.ContentType)
	switch {
	case b.Accepts && !(last && len(b.Buf) < minGzipBytes):
		header.Set("Content-Encoding", "gzip")
		b.gzip = b.memory.gzip.Get().(*gzip.Writer)
		b.gzip.Reset(b.W)
	case last:
		header.Set("Content-Length", strconv.Itoa(len(b.Buf)))
	}
	b.W.WriteHeader(status)
}

// StateCost sets the header that says what was read to answer.
func (b *Body) StateCost() { b.W.Header().Set("Shale-Cost", CostHeader(b.cost)) }
