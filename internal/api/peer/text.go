package peer

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// sessions are the open streams of text, by their names.
type sessions struct {
	mu   sync.Mutex
	open map[string]*session
}

// session is an open stream of text. Its pages can be read until it is closed.
type session struct {
	req *model.Request
	set *read.TextSet

	reading sync.RWMutex // held for reading by each read of a page
	closed  bool

	mu      sync.Mutex
	pages   []*sessionPage
	numbers map[model.TextPage]int
}

// sessionPage is a page with its chunks, in the order in which the asker was told of them.
type sessionPage struct {
	page   model.TextPage
	chunks []pageChunk
}

type pageChunk struct {
	key   model.Key
	index int
}

// chunkBytes estimates the memory of a chunk in a session.
const chunkBytes = 64

func (s *sessions) add(x *session) string {
	name := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[string]*session)
	}
	s.open[name] = x
	return name
}

func (s *sessions) find(name string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[name]
}

func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// remove ends a session, and waits for the reads of its pages.
func (s *sessions) remove(name string) {
	s.mu.Lock()
	x := s.open[name]
	delete(s.open, name)
	s.mu.Unlock()
	x.reading.Lock()
	defer x.reading.Unlock()
	x.closed = true
	_ = x.set.Close() // it only gives back what it has pinned
}

// text streams streams and their chunks, and then keeps the pages until the asker closes the connection.
func (h *Handler) text(ctx context.Context, c *call) error {
	set, err := c.querier.SelectText(ctx, c.req)
	if err != nil {
		return err
	}
	s := &session{req: c.req, set: set, numbers: make(map[model.TextPage]int)}
	name := h.sessions.add(s)
	defer h.sessions.remove(name)
	if err := c.head(name); err != nil {
		return err
	}
	if err := s.list(ctx, c); err != nil {
		return err
	}
	if err := c.trailer(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// list streams the series: a record with their labels, and a frame with their chunks.
func (s *session) list(ctx context.Context, c *call) error {
	out := records{c: c, family: model.Text}
	out.b.Tenant, out.b.Signal = c.of.Tenant, c.of.Signal
	var chunks []model.TextChunk
	var onWire []wire.Chunk
	var frame []byte
	flush := func() error {
		if len(out.b.Keys) == 0 {
			return nil
		}
		if err := out.flush(); err != nil {
			return err
		}
		full := frame
		frame = frame[:0]
		return c.w.write(wire.Chunks, full)
	}
	for s.set.Next(ctx) {
		var err error
		if chunks, err = s.set.Chunks(ctx, chunks[:0]); err != nil {
			return err
		}
		if err := c.req.Quota.TakeBytes(int64(len(chunks)) * chunkBytes); err != nil {
			return err
		}
		onWire = s.number(s.set.Key(), chunks, onWire[:0])
		frame = wire.AppendChunks(frame, onWire)
		out.b.Labels.Append(uint32(len(out.b.Keys)), s.set.Labels())
		out.b.EndSeries(s.set.Key())
		if len(frame)+len(out.b.Labels.Bytes) >= wire.TargetBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := s.set.Err(); err != nil {
		return err
	}
	return flush()
}

// number gives pages and chunks their numbers.
func (s *session) number(k model.Key, chunks []model.TextChunk, dst []wire.Chunk) []wire.Chunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range chunks {
		n, ok := s.numbers[c.Page]
		if !ok {
			n = len(s.pages)
			s.numbers[c.Page] = n
			s.pages = append(s.pages, &sessionPage{page: c.Page})
		}
		p := s.pages[n]
		dst = append(dst, wire.Chunk{TimeRange: c.TimeRange, Rows: c.Rows, Bytes: c.Bytes, Order: c.Order, Page: n, Index: len(p.chunks)})
		p.chunks = append(p.chunks, pageChunk{k, c.Index})
	}
	return dst
}

// pageOf returns a page, and its chunks so far.
func (s *session) pageOf(n int) (model.TextPage, []pageChunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 || n >= len(s.pages) {
		return nil, nil
	}
	p := s.pages[n]
	return p.page, p.chunks[:len(p.chunks):len(p.chunks)]
}

// page answers with the lines of a page: a record with a series for each chunk.
func (h *Handler) page(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := h.bounded(r)
	defer cancel()
	w := newAnswer(ctx, rw)
	defer w.done()
	h.end(w, func() error {
		var of wire.PageRequest
		b, err := body(r)
		if err != nil {
			return err
		}
		if err := wire.ParseJSON(b, &of); err != nil {
			return fmt.Errorf("%w: %v", model.ErrInvalid, err)
		}
		select {
		case h.pages <- struct{}{}:
			defer func() { <-h.pages }()
		case <-ctx.Done():
			return fmt.Errorf("%w: %d pages are being read", wire.ErrOverloaded, h.o.MaxPages)
		}
		s := h.sessions.find(of.Session)
		if s == nil {
			return fmt.Errorf("%w: the stream of this page is closed", model.ErrClosed)
		}
		frames, skipped, err := s.read(ctx, &of)
		if err != nil {
			return err
		}
		if err := w.json(wire.Head, wire.Answer{Version: wire.Version}); err != nil {
			return err
		}
		for _, f := range frames {
			if err := w.write(wire.Record, f); err != nil {
				return err
			}
		}
		if err := w.json(wire.Trailer, wire.End{Cost: wire.TakeCost(s.req.Cost), Skipped: skipped}); err != nil {
			return err
		}
		return w.flush()
	}())
}

// maxRecordLines is the most bytes of lines in a record. A chunk has less, unless very many lines have one
// time.
const maxRecordLines = 4 << 20

// read reads the chunks of a page into records. The page is released when it returns.
func (s *session) read(ctx context.Context, of *wire.PageRequest) (frames [][]byte, skipped bool, err error) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	if s.closed {
		return nil, false, fmt.Errorf("%w: the stream of this page is closed", model.ErrClosed)
	}
	page, chunks := s.pageOf(of.Page)
	if page == nil {
		return nil, false, fmt.Errorf("%w: there is no page %d", model.ErrInvalid, of.Page)
	}
	defer page.Release()
	if of.Filter {
		if skipped, err = page.Skip(ctx); skipped || err != nil {
			return nil, skipped, err
		}
	}
	var b model.Batch
	flush := func() error {
		if len(b.Text.Bytes) > wire.MaxFrame/2 {
			return fmt.Errorf("%w: %d bytes of lines of one stream at one time cannot be sent", model.ErrLimit, len(b.Text.Bytes))
		}
		frames = append(frames, journal.EncodeBatch(nil, &b))
		b.Reset()
		return nil
	}
	var rows model.TextRows
	var line []byte
	for _, c := range chunks {
		if err := page.ReadText(ctx, c.index, of.Want, &rows); err != nil {
			return nil, false, err
		}
		b.Signal = model.Logs
		for i, at := range rows.Times {
			l := model.Line{Metadata: rows.MetadataAt(i)}
			if of.Want&model.WantLines != 0 {
				l.Text = rows.Line(i)
			}
			line = model.AppendLine(line[:0], &l)
			b.Text.AppendBlob(at, model.KindText, line, 0)
		}
		b.EndSeries(c.key)
		if len(b.Text.Bytes) > maxRecordLines {
			if err := flush(); err != nil {
				return nil, false, err
			}
		}
	}
	if len(b.Keys) > 0 {
		err = flush()
	}
	return frames, false, err
}
