package conns

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The times of a stop.
const (
	// DrainTime is how long a stop waits for running requests.
	DrainTime = 20 * time.Second
	// stallTime is how long a client may neither send nor read while the server stops.
	stallTime = 2 * time.Second
	// cutTime is how long a stop waits for the handlers of requests that it has cut.
	cutTime = 3 * time.Second
)

// Connections are the open HTTP connections, and what each of them waits for.
type Connections struct {
	net.Listener
	log *slog.Logger
	// displaced counts those that were closed for others.
	displaced prometheus.Counter

	mu   sync.Mutex
	open map[*connection]struct{}
}

// connection notes since when it waits for its client, as Unix nanoseconds; 0: it does not.
type connection struct {
	net.Conn
	request             atomic.Pointer[http.Request] // nil: none is being served
	header, body, write atomic.Int64
	// idle is since when nothing of a request has come, as Unix nanoseconds; 0: some has.
	idle atomic.Int64
}

type connectionKey struct{}

// connectionBelow returns the connection below TLS, if there is TLS.
func connectionBelow(conn net.Conn) *connection {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	return conn.(*connection)
}

// Watch returns a listener whose connections are watched. It has a bounded number of them. A further one
// takes the place of the one that has been idle longest, or waits.
func Watch(l net.Listener, most int, reg prometheus.Registerer, log *slog.Logger) *Connections {
	c := &Connections{log: log, open: make(map[*connection]struct{})}
	c.Listener = limit(l, most, c.displaceIdle)
	c.displaced = promauto.With(reg).NewCounter(prometheus.CounterOpts{
		Name: "shale_http_displaced_connections_total", Help: "Idle HTTP connections that were closed for others, because limits.connections were open.",
	})
	return c
}

// idleLeast is how long a connection must have been idle before it is closed for another one: after a shorter
// time, its next request may well be on its way.
const idleLeast = time.Second

// displaceIdle closes the connection that has been idle longest.
func (c *Connections) displaceIdle() {
	var idlest *connection
	since := time.Now().Add(-idleLeast).UnixNano()
	c.each(func(conn *connection) {
		if idle := conn.idle.Load(); idle != 0 && idle < since {
			idlest, since = conn, idle
		}
	})
	if idlest == nil || !idlest.idle.CompareAndSwap(since, 0) { // a request has come
		return
	}
	c.displaced.Inc()
	_ = idlest.Close()
}

// Serve makes a server tell the state of its connections.
func (c *Connections) Serve(s *http.Server) {
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
	s.ConnState = func(conn net.Conn, state http.ConnState) { c.changed(connectionBelow(conn), state) }
	handler := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := connectionBelow(r.Context().Value(connectionKey{}).(net.Conn))
		conn.header.Store(0)
		conn.idle.Store(0) // a request may have come together with the one before
		conn.request.Store(r)
		if r.Body != http.NoBody {
			// The server's own request keeps its body. With another one the server would not know how much is
			// left: it would wait for the rest of a refused body before it responds, and reset the connection.
			r = r.WithContext(r.Context())
			r.Body = &watchedBody{r.Body, conn}
		}
		handler.ServeHTTP(w, r)
	})
}

// Accept returns a connection that is watched.
func (c *Connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn}, nil
}

func (c *Connections) changed(conn *connection, state http.ConnState) {
	conn.header.Store(0)
	switch state {
	case http.StateNew:
		now := time.Now().UnixNano()
		conn.header.Store(now)
		conn.idle.Store(now)
		c.mu.Lock()
		c.open[conn] = struct{}{}
		c.mu.Unlock()
	case http.StateIdle: // not before: the end of a response is written after its handler has returned
		conn.request.Store(nil)
		conn.idle.Store(time.Now().UnixNano())
	case http.StateActive:
		conn.header.Store(time.Now().UnixNano())
	case http.StateClosed, http.StateHijacked:
		c.mu.Lock()
		delete(c.open, conn)
		c.mu.Unlock()
	}
}

// Read notes that a request has begun: the server says so only when it has read the whole header.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.idle.Store(0)
	}
	return n, err
}

// Write notes that the client must read.
func (c *connection) Write(p []byte) (int, error) {
	c.write.Store(time.Now().UnixNano())
	defer c.write.Store(0)
	return c.Conn.Write(p)
}

// watchedBody notes that the client must send.
type watchedBody struct {
	io.ReadCloser
	conn *connection
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.conn.body.Store(time.Now().UnixNano())
	defer b.conn.body.Store(0)
	return b.ReadCloser.Read(p)
}

// stalled returns what the connection has been waiting for since before a time; empty: nothing.
func (c *connection) stalled(before int64) string {
	for _, w := range [...]struct {
		since *atomic.Int64
		text  string
	}{{&c.write, "the client to read the response"}, {&c.body, "the body of the request"}, {&c.header, "the header of a request"}} {
		if since := w.since.Load(); since != 0 && since < before {
			return w.text
		}
	}
	return ""
}

// each calls do for every open connection.
func (c *Connections) each(do func(*connection)) {
	c.mu.Lock()
	all := make([]*connection, 0, len(c.open))
	for conn := range c.open {
		all = append(all, conn)
	}
	c.mu.Unlock()
	for _, conn := range all {
		do(conn)
	}
}

// Drain shuts a server down: it waits for running requests, but not for clients that stall. It logs whatever
// it cuts. A request that is cut has not been acknowledged, so no data is at risk and there is no error.
func (c *Connections) Drain(s *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), DrainTime)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(ctx) }()
	ticker := time.NewTicker(stallTime / 10)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if errors.Is(err, context.DeadlineExceeded) {
				c.cut(s)
			} else if err != nil {
				c.log.Warn("closing the HTTP listener failed", "err", err)
			}
			return
		case now := <-ticker.C:
			c.each(func(conn *connection) {
				if waits := conn.stalled(now.Add(-stallTime).UnixNano()); waits != "" {
					c.logCut("stopping: closed a connection whose client stalled", conn, waits)
					_ = conn.Close() // the client gets no more in any case
				}
			})
		}
	}
}

// cut closes all connections and waits for their handlers.
func (c *Connections) cut(s *http.Server) {
	c.each(func(conn *connection) {
		c.logCut("stopping: cut a request that still ran after "+DrainTime.String(), conn, conn.stalled(time.Now().UnixNano()))
	})
	if err := s.Close(); err != nil {
		c.log.Warn("closing HTTP connections failed", "err", err)
	}
	for end := time.Now().Add(cutTime); time.Now().Before(end); time.Sleep(stallTime / 100) {
		running := false
		c.each(func(conn *connection) { running = running || conn.request.Load() != nil })
		if !running {
			return
		}
	}
	c.each(func(conn *connection) { c.logCut("stopping: a request that was cut still runs", conn, "") })
}

func (c *Connections) logCut(msg string, conn *connection, waits string) {
	request := ""
	if r := conn.request.Load(); r != nil {
		request = r.Method + " " + r.URL.Path
	}
	c.log.Warn(msg, "client", conn.RemoteAddr(), "request", request, "waited_for", waits)
}
