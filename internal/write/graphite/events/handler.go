package events

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/event"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/receive"
)

// Paths returns the patterns at which the handler is mounted: as in graphite-web, a path may end in a slash.
func Paths() []string {
	return []string{"/events", "/events/{$}", "/graphite/events", "/graphite/events/{$}"}
}

// Options configure a Handler.
type Options struct {
	Sink receive.Sink
	// Rules are those for lines: an event is one.
	Rules logs.Rules
	// RulesOf returns the rules of a tenant; nil: Rules.
	RulesOf func(tenant string) *logs.Rules
	// Registerer registers the metrics; it may be nil.
	Registerer prometheus.Registerer
}

// Handler receives events. It is safe for concurrent use.
type Handler struct {
	sink    receive.Sink
	server  *receive.Server
	streams *logs.Streams
	rules   func(tenant string) *logs.Rules
	metrics *receive.Metrics
	number  atomic.Uint32 // of the next event; it begins anywhere, so that ids differ after a restart
}

// cacheBytes is the memory for recently seen streams, of which there is one.
const cacheBytes = 64 << 10

// New returns a handler to be mounted at [Paths].
func New(o Options) *Handler {
	if o.RulesOf == nil {
		o.RulesOf = func(string) *logs.Rules { return &o.Rules }
	}
	r := receive.NewRegistry(o.Registerer)
	m := &receive.Metrics{
		Requests:  r.Requests("shale_graphite_events_requests_total", "Requests with events of Graphite, by status code of the response.", []string{"code"}),
		Lines:     r.Counter("shale_graphite_events_received_total", "Events of Graphite received and durable."),
		BodyBytes: r.Counter("shale_graphite_events_body_bytes_total", "Bytes of bodies with events of Graphite read, as sent."),
		Seconds:   r.Seconds("shale_graphite_events_request_seconds", "Time from the headers of a request with an event to its response.", nil),
	}
	h := &Handler{
		rules: o.RulesOf,
		sink:  o.Sink, server: receive.New(o.Sink, body.New("event", "lines"), receive.Forms{}, m),
		streams: logs.NewStreams(o.Sink.Seed(), cacheBytes), metrics: m,
	}
	h.number.Store(rand.Uint32())
	return h
}

// ServeHTTP handles one request. It responds with 200 and no text when the event is durable, and otherwise
// with an error in JSON.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	var err error
	if ce := r.Header.Get("Content-Encoding"); ce != "" && ce != "identity" {
		err = receive.Unsupported("Content-Encoding", ce, "events are not compressed")
	}
	res := h.server.Serve(r, err, h.store)
	if res.Status == http.StatusOK {
		w.WriteHeader(http.StatusOK)
	} else {
		text, _ := json.Marshal(map[string]string{"error": res.BoundedText()}) // strings cannot fail
		res.WriteBody(w, "application/json", text)
	}
	h.metrics.Observe(begin, &res, nil)
}

// parsedBytes is the memory for each byte of an event: its text and its line are copies in which a character
// may have six bytes, and a member or a tag may have three bytes and takes a place in a table that doubles.
const parsedBytes = 16

// store makes an event durable.
func (h *Handler) store(r *receive.Request) (receive.Response, error) {
	if err := r.Reserve(int64(parsedBytes * len(r.Body))); err != nil {
		return receive.Response{}, err
	}
	e, err := Parse(r.Body, h.sink.Now())
	if err != nil {
		return receive.Response{}, err
	}
	line, err := e.Line()
	if err != nil {
		return receive.Response{}, err
	}
	b := h.sink.Batch(r.Tenant, model.Logs)
	defer h.sink.Recycle(b)
	var entries logs.Entries
	rules := h.rules(r.Tenant)
	entries.Start(rules, b, len(r.Body), r.Reserve)
	entries.Begin(h.streams.GetText(rules, []byte(event.Selector)))
	entries.Meta.Reset()
	id := strconv.FormatInt(event.ID(e.Time/int64(time.Second), h.number.Add(1)), 10)
	entries.Meta.Add([]byte(event.IDName), []byte(id))
	if err := entries.Add(e.Time, line); err != nil {
		return receive.Response{}, err
	}
	if err := entries.End(); err != nil {
		return receive.Response{}, err
	}
	_, left, err := r.Push(b, entries.Left)
	switch {
	case err != nil:
		return receive.Response{}, err
	case len(left) > 0:
		return receive.Response{Status: http.StatusBadRequest, Text: logs.Report(left)}, nil
	}
	return receive.Response{Status: http.StatusOK}, nil
}
