package fronts

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
)

// backend stands before the store that fronts ask, and counts what they ask for.
type backend struct {
	server   *http.Server
	url      string
	requests atomic.Int64
	bytes    atomic.Int64 // of the bodies of responses, as they are sent
}

// newBackend starts counting on a port of its own.
func newBackend(of string) (*backend, error) {
	target, err := url.Parse(of)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &backend{url: "http://" + l.Addr().String()}
	to := httputil.NewSingleHostReverseProxy(target)
	b.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/select/") {
			b.requests.Add(1)
			w = &countedResponse{w, b}
		}
		// A response may begin before the request was passed on. The server must not close the request then.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 needs none
		to.ServeHTTP(w, r)
	})}
	go func() { _ = b.server.Serve(l) }() // it ends with Close
	return b, nil
}

func (b *backend) close() error { return b.server.Close() }

// countedResponse counts the bytes of a response.
type countedResponse struct {
	http.ResponseWriter
	b *backend
}

func (c *countedResponse) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.b.bytes.Add(int64(n))
	return n, err
}

// Unwrap lets the server flush.
func (c *countedResponse) Unwrap() http.ResponseWriter { return c.ResponseWriter }
