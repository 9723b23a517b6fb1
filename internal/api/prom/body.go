package prom

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	jsoniter "github.com/json-iterator/go"
	"github.com/klauspost/compress/gzip"

	"github.com/shaledb/shale/internal/model"
)

// The sizes of an answer: it goes out in pieces of flushBytes, and is compressed from minGzipBytes on, below which
// the frame of gzip and its state cost more than the bytes.
const (
	flushBytes   = 64 << 10
	minGzipBytes = 1400
	maxKeepBytes = 4 * flushBytes
)

// body writes an answer through a pooled buffer, compressed if the client takes that.
type body struct {
	w       http.ResponseWriter
	buf     []byte
	status  int // 0 until the header has been sent
	gzip    *gzip.Writer
	accepts bool // gzip
	isHead  bool
	broken  bool // the client did not get all of it
	plain   bool // errors are text and not JSON
	// contentType is that of what is sent; application/json if empty.
	contentType string
	memory      *memory
	timeout     time.Duration // for the client to take the answer
	// cost is stated when the header is sent: of an answer in pieces, what the first of them cost.
	cost       *model.Cost
	histograms *jsoniter.Stream // nil until there is one
}

// memory is what the answers of a handler use again.
type memory struct {
	buffers, gzip sync.Pool
}

func newMemory() *memory {
	return &memory{
		buffers: sync.Pool{New: func() any { b := make([]byte, 0, flushBytes+flushBytes/4); return &b }},
		gzip:    sync.Pool{New: func() any { z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return z }},
	}
}

func newBody(w http.ResponseWriter, r *http.Request, m *memory, timeout time.Duration, cost *model.Cost) *body {
	b := m.buffers.Get().(*[]byte)
	w.Header().Add("Vary", "Accept-Encoding")
	return &body{
		w: w, buf: (*b)[:0], accepts: acceptsGzip(r.Header.Values("Accept-Encoding")), isHead: r.Method == http.MethodHead,
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

// release gives the memory back.
func (b *body) release() {
	if b.gzip != nil {
		b.gzip.Reset(nil)
		b.memory.gzip.Put(b.gzip)
		b.gzip = nil
	}
	if cap(b.buf) <= maxKeepBytes {
		buf := b.buf[:0]
		b.memory.buffers.Put(&buf)
	}
	b.buf = nil
}

// spill sends what has gathered if that is enough for a piece.
func (b *body) spill() {
	if len(b.buf) >= flushBytes {
		b.flush(http.StatusOK, false)
	}
}

// flush sends what has gathered; last says that nothing follows.
func (b *body) flush(status int, last bool) {
	if b.status == 0 {
		b.begin(status, last)
	}
	if !b.broken && !b.isHead {
		var to io.Writer = b.w
		if b.gzip != nil {
			to = b.gzip
		}
		if _, err := to.Write(b.buf); err != nil {
			b.broken = true
		}
	}
	b.buf = b.buf[:0]
	if last && b.gzip != nil && !b.broken && !b.isHead {
		b.broken = b.gzip.Close() != nil
	}
}

func (b *body) begin(status int, last bool) {
	b.status = status
	// A client that does not read holds the memory of the answer and a place among the running queries. A writer that
	// knows no deadline is one of a test.
	_ = http.NewResponseController(b.w).SetWriteDeadline(time.Now().Add(b.timeout))
	header := b.w.Header()
	header.Set("Shale-Cost", costHeader(b.cost))
	if b.contentType == "" {
		b.contentType = "application/json"
	}
	header.Set("Content-Type", b.contentType)
	switch {
	case b.accepts && !(last && len(b.buf) < minGzipBytes):
		header.Set("Content-Encoding", "gzip")
		b.gzip = b.memory.gzip.Get().(*gzip.Writer)
		b.gzip.Reset(b.w)
	case last:
		header.Set("Content-Length", strconv.Itoa(len(b.buf)))
	}
	b.w.WriteHeader(status)
}

// success sends an answer. With an error, of an answer without envelope, the client has got nothing or, if the body is
// broken, a part.
func (b *body) success(a *answer) error {
	switch {
	case a.empty:
		b.status = http.StatusNoContent
		b.w.Header().Set("Shale-Cost", costHeader(b.cost))
		b.w.WriteHeader(b.status)
		return nil
	case a.stream != nil:
		b.contentType = a.contentType
		b.accepts = b.accepts && !a.compressed
		if err := a.stream(b); err != nil {
			b.broken = b.status != 0
			b.contentType = ""
			return err
		}
		b.flush(http.StatusOK, true)
		return nil
	}
	b.raw(`{"status":"success","data":`)
	a.write(b)
	warnings, infos := sortedAnnotations(a.warnings, a.query)
	b.texts(`,"warnings":`, warnings)
	b.texts(`,"infos":`, infos)
	b.raw("}")
	b.flush(http.StatusOK, true)
	return nil
}

// failure sends an error.
func (b *body) failure(e *apiError) {
	b.buf = b.buf[:0]
	if b.plain {
		b.contentType = "text/plain; charset=utf-8"
		b.w.Header().Set("X-Content-Type-Options", "nosniff")
		b.raw(e.text())
		b.raw("\n")
		b.flush(e.status, true)
		return
	}
	b.raw(`{"status":"error","errorType":`)
	b.str(string(e.kind))
	b.raw(`,"error":`)
	b.str(e.text())
	b.raw("}")
	b.flush(e.status, true)
}

// texts writes a member whose value is a list of strings, unless it is empty.
func (b *body) texts(member string, values []string) {
	if len(values) > 0 {
		b.raw(member)
		b.strs(values)
	}
}
