package graphite

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/receive"
)

// HTTPPath is the path at which the handler of lines over HTTP is mounted.
const HTTPPath = "/api/v1/write/graphite"

// HTTPSink is the write path as HTTP sees it.
type HTTPSink interface {
	receive.Sink
	labelSink
}

// HTTP receives lines in bodies of POST requests. Unlike the other transports it has responses and tenants.
// It is safe for concurrent use.
type HTTP struct {
	sink    HTTPSink
	rules   Rules
	server  *receive.Server
	chunks  pool[chunk, *chunk]
	labels  *labelRoom
	metrics *receive.Metrics
}

const httpSupported = "expected Content-Encoding gzip, zstd, lz4 or deflate"

// NewHTTP returns a handler. The rules, which may be nil, apply to all points. It registers its metrics with
// reg, which may be nil.
func NewHTTP(sink HTTPSink, rules Rules, reg prometheus.Registerer) *HTTP {
	r := receive.NewRegistry(reg)
	m := &receive.Metrics{
		Requests:  r.Requests("shale_graphite_http_requests_total", "Requests with Graphite lines over HTTP, by status code of the response.", []string{"code"}),
		Samples:   r.Counter("shale_graphite_http_points_total", "Graphite points received over HTTP and durable."),
		BodyBytes: r.Counter("shale_graphite_http_body_bytes_total", "Bytes of bodies with Graphite lines read over HTTP, as sent."),
		Seconds:   r.Seconds("shale_graphite_http_request_seconds", "Time from the headers of a request with Graphite lines to its response.", nil),
	}
	forms := receive.Forms{Encodings: []string{"gzip", "zstd", "lz4", "deflate"}}
	return &HTTP{sink: sink, rules: rules, labels: newLabelRoom(sink), server: receive.New(sink, body.New("Graphite lines", "lines"), forms, m), metrics: m}
}

// ServeHTTP handles one request. It responds with 204 when all lines are durable, with 400, counts and
// examples when all lines that can be stored are durable, and otherwise with a status that says whether to
// retry.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	encoding, err := encodingOf(r.Header)
	res := h.server.Serve(r, err, func(req *receive.Request) (receive.Response, error) { return h.store(req, encoding) })
	res.WriteText(w)
	h.metrics.Observe(begin, &res, nil)
}

// encodingOf reads the headers. Its error is a 415.
func encodingOf(h http.Header) (body.Encoding, error) {
	switch ce := h.Get("Content-Encoding"); ce {
	case "", "identity":
		return body.Plain, nil
	case "gzip":
		return body.Gzip, nil
	case "zstd":
		return body.Zstd, nil
	case "lz4":
		return body.LZ4, nil
	case "deflate":
		return body.Deflate, nil
	default:
		return 0, receive.Unsupported("Content-Encoding", ce, httpSupported)
	}
}

// store parses a body and pushes its points, a chunk at a time.
func (h *HTTP) store(r *receive.Request, encoding body.Encoding) (receive.Response, error) {
	if err := r.Decode(encoding); err != nil {
		return receive.Response{}, err
	}
	// One chunk at a time is in memory. A line of a few bytes may make a row.
	if err := r.Reserve(int64(min(countLines(r.Body), maxRows)*rowBytes + min(len(r.Body), 2*maxLabelBytes))); err != nil {
		return receive.Response{}, err
	}
	var bad, left write.Rejections
	p := &parser{now: h.sink.Now, maxLine: maxLineBytes, tenant: r.Tenant, rules: h.rules, ruled: map[string]int{}, rest: r.Body}
	p.keys.Seed, p.keys.Signal = h.sink.Seed(), model.Metrics
	p.reportBad = func(line []byte, why string) {
		if strings.HasSuffix(why, storedWhole) {
			return
		}
		reason := write.ReasonBadLine
		if why == badTime {
			reason = write.ReasonTimeRange
		}
		bad.Add(reason, write.Counts{Samples: 1}, func() string { return fmt.Sprintf("%s: %.200q", why, line) })
	}
	c := h.chunks.get(true)
	defer h.chunks.put(c)
	var stored write.Counts
	for more := true; more; {
		c.reset()
		bad = bad[:0:0]
		more = p.feed(c)
		h.ignore(r.Tenant, p)
		if err := h.syncRules(); err != nil {
			return receive.Response{Stored: stored}, err
		}
		n, refused, err := h.push(r, c, bad)
		stored.Add(n)
		if err != nil {
			return receive.Response{Stored: stored}, err
		}
		left.Merge(refused)
	}
	return response(left, stored), nil
}

// syncRules makes durable what rules keep of the points, so that the response covers it.
func (h *HTTP) syncRules() error {
	if h.rules == nil {
		return nil
	}
	if err := h.rules.Sync(); err != nil {
		return fmt.Errorf("%w: aggregates and relayed points cannot be kept: %w", model.ErrTransient, err)
	}
	return nil
}

func (h *HTTP) push(r *receive.Request, c *chunk, bad write.Rejections) (write.Counts, write.Rejections, error) {
	b := h.sink.Batch(r.Tenant, model.Metrics)
	defer h.sink.Recycle(b)
	c.fill(b)
	c.begin(r.Context, h.labels, r.Tenant)
	n, refused, err := r.Push(b, bad)
	c.end(b, err)
	return n, refused, err
}

// ignore counts the points that are left out without a word to the sender: those without a value, and those
// that a rule discards.
func (h *HTTP) ignore(tenant string, p *parser) {
	var out write.Rejections
	if p.counts.nan > 0 {
		out.Add(write.ReasonNaN, write.Counts{Samples: p.counts.nan}, func() string { return string(p.firstNaN) })
	}
	for reason, n := range p.ruled {
		out.Add(reason, write.Counts{Samples: n}, func() string { return "" })
	}
	h.sink.Rejected(tenant, out)
	clear(p.ruled)
	p.counts = counts{}
}

// response returns 204 if no point was refused. Otherwise it returns 400, so that the sender drops the
// request: all points that can be stored are durable.
func response(left write.Rejections, stored write.Counts) receive.Response {
	if len(left) == 0 {
		return receive.Response{Status: http.StatusNoContent, Stored: stored}
	}
	refused := 0
	var text strings.Builder
	for i := range left {
		refused += left[i].Samples
		fmt.Fprintf(&text, "; %s: %d", left[i].Reason, left[i].Samples)
		if len(left[i].Examples) > 0 {
			text.WriteString(", such as " + left[i].Examples[0])
		}
	}
	return receive.Response{
		Status: http.StatusBadRequest, Stored: stored, Rejected: refused,
		Text: fmt.Sprintf("%d %s stored, %d refused%s", stored.Samples, english.PluralWord(stored.Samples, "point", ""), refused, text.String()),
	}
}
