package conns

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
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
	// headerTimeout is how long the header of a request may take; 0: there is no limit.
	headerTimeout time.Duration

	mu    sync.Mutex
	open  map[*connection]struct{}
	hosts map[netip.Addr]*host // those of open
}

// connection notes since when it waits for its client, as Unix nanoseconds; 0: it does not.
type connection struct {
	net.Conn
	request             atomic.Pointer[http.Request] // nil: none is being served
	header, body, write atomic.Int64
	// waits is since when it waits for a request of which nothing has come. If a part of the header has come,
	// or of a TLS handshake, it is since when, and negative.
	waits atomic.Int64
	// kept means that it waits for a further request.
	kept          bool
	headerTimeout time.Duration // of a further request
	// gaveWay means that it was closed for another one.
	gaveWay atomic.Bool
	host    *host // guarded by the mutex of Connections; nil: it is not counted
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
// takes the place of one that waits for a request, or waits itself.
func Watch(l net.Listener, most int, reg prometheus.Registerer, log *slog.Logger) *Connections {
	c := &Connections{log: log, open: make(map[*connection]struct{}), hosts: make(map[netip.Addr]*host)}
	c.Listener = limit(l, most, c.displace)
	c.displaced = promauto.With(reg).NewCounter(prometheus.CounterOpts{
		Name: "shale_http_displaced_connections_total", Help: "HTTP connections without a whole request that were closed for others, because limits.connections were open.",
	})
	return c
}

// Serve makes a server tell the state of its connections, and log through the one of these.
func (c *Connections) Serve(s *http.Server) {
	c.headerTimeout = s.ReadHeaderTimeout
	s.ErrorLog = log.New(&serverLog{log: c.log}, "", 0)
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
	s.ConnState = func(conn net.Conn, state http.ConnState) { c.changed(connectionBelow(conn), state) }
	handler := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := connectionBelow(r.Context().Value(connectionKey{}).(net.Conn))
		conn.header.Store(0)
		conn.waits.Store(0)
		conn.request.Store(r)
		if conn.gaveWay.Load() {
			panic(http.ErrAbortHandler) // its last bytes came meanwhile, and the client must not expect an effect
		}
		if r.Body != http.NoBody {
			// The server's own request keeps its body. With another one the server would not know how much is
			// left: it would wait for the rest of a refused body before it responds, and reset the
			// connection.
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
	return &connection{Conn: conn, headerTimeout: c.headerTimeout}, nil
}

func (c *Connections) changed(conn *connection, state http.ConnState) {
	conn.header.Store(0)
	switch state {
	case http.StateNew:
		now := time.Now().UnixNano()
		conn.header.Store(now)
		conn.waits.Store(now)
		c.enter(conn)
	case http.StateIdle: // not before: the end of a response is written after its handler has returned
		conn.request.Store(nil)
		conn.kept = true
		conn.waits.Store(time.Now().UnixNano())
	case http.StateActive: // the whole header has come, or the response is an error
		conn.waits.Store(0)
		conn.header.Store(time.Now().UnixNano())
	case http.StateClosed, http.StateHijacked:
		c.mu.Lock()
		delete(c.open, conn)
		c.uncount(conn)
		c.mu.Unlock()
	}
}

// Read notes that the header of a request has begun to come. The server tells only when it has come. Until
// there are four bytes of a further request, the server allows it the time of an idle connection: Read allows
// it no more than any other header.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if since := c.waits.Load(); n > 0 && since > 0 {
		now := time.Now()
		if c.waits.CompareAndSwap(since, -now.UnixNano()) && c.kept && c.headerTimeout > 0 {
			_ = c.SetReadDeadline(now.Add(c.headerTimeout))
		}
	}
	return n, c.reason("read", err)
}

// Write notes that the client must read.
func (c *connection) Write(p []byte) (int, error) {
	c.write.Store(time.Now().UnixNano())
	defer c.write.Store(0)
	n, err := c.Conn.Write(p)
	return n, c.reason("write", err)
}

// reason returns the error of an operation, or that the connection gave way, which the log leaves out.
func (c *connection) reason(op string, err error) error {
	if err != nil && c.gaveWay.Load() {
		return &net.OpError{Op: op, Net: "tcp", Err: errGaveWay}
	}
	return err
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
