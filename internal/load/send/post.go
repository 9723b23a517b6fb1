package send

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// requestTimeout bounds one attempt, as in a Prometheus by default.
const requestTimeout = 30 * time.Second

// poster sends one request at a time over a connection of its own. It speaks HTTP/1.1 itself: a request of
// http.Client passes through two more goroutines, and waking them costs a generator at a steady pace much of
// its CPU time.
type poster struct {
	url    *url.URL
	common string
	header []byte // up to the tenant
	conn   net.Conn
	stop   func() bool // ends the wait for the end of the context, which closes the connection
	in     *bufio.Reader
	head   []byte
}

// response is the outcome of one attempt.
type response struct {
	code       int
	retryAfter time.Duration
	text       string
	written    written
}

// newPoster takes the header lines that describe bodies, each with its line break.
func newPoster(u *url.URL, userAgent, token, bodies string) *poster {
	p := &poster{url: u, in: bufio.NewReader(nil)}
	p.common = "POST " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\nUser-Agent: " + userAgent + "\r\n"
	if token != "" {
		p.common += "Authorization: Bearer " + token + "\r\n"
	}
	p.describe(bodies)
	return p
}

// describe changes the header lines that describe bodies.
func (p *poster) describe(bodies string) { p.header = []byte(p.common + bodies) }

// post makes one attempt, as a tenant unless it is empty. All attempts of a poster have one context.
func (p *poster) post(ctx context.Context, compressed []byte, tenant string, attempt int) (response, error) {
	if p.conn == nil {
		if err := p.dial(ctx); err != nil {
			return response{}, err
		}
	}
	if err := p.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		p.close()
		return response{}, err
	}
	p.head = append(p.head[:0], p.header...)
	if tenant != "" {
		p.head = append(append(append(p.head, "X-Scope-OrgID: "...), tenant...), "\r\n"...)
	}
	p.head = strconv.AppendInt(append(p.head, "Content-Length: "...), int64(len(compressed)), 10)
	if attempt > 0 {
		p.head = strconv.AppendInt(append(p.head, "\r\nRetry-Attempt: "...), int64(attempt), 10)
	}
	p.head = append(p.head, "\r\n\r\n"...)
	request := net.Buffers{p.head, compressed}
	_, writeErr := request.WriteTo(p.conn)
	if writeErr != nil {
		// A server that refuses may respond and close before it has read the body: then its response counts.
		if err := p.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			p.close()
			return response{}, writeErr
		}
	}
	got, reusable, err := p.receive()
	if writeErr != nil || !reusable || err != nil {
		p.close()
	}
	if err != nil && writeErr != nil {
		err = writeErr
	}
	return got, err
}

// receive reads the response. The connection is reusable if the response was read to its end.
func (p *poster) receive() (got response, reusable bool, err error) {
	resp, err := http.ReadResponse(p.in, nil)
	if err != nil {
		return response{}, false, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
	if err != nil {
		return response{}, false, err
	}
	// Longer responses are rare enough for a new connection.
	reusable = len(text) < maxErrorText && !resp.Close
	return response{
		code: resp.StatusCode, text: string(bytes.TrimSpace(text[:min(len(text), 500)])),
		retryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()), written: writtenOf(resp.Header),
	}, reusable, nil
}

const maxErrorText = 64 << 10

func (p *poster) dial(ctx context.Context) error {
	addr := p.url.Host
	if p.url.Port() == "" {
		addr = net.JoinHostPort(p.url.Hostname(), p.url.Scheme)
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if p.url.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: p.url.Hostname(), MinVersion: tls.VersionTLS12})
	}
	p.conn = conn
	p.in.Reset(conn)
	p.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return nil
}

// close gives up the connection, if there is one. An error does not matter any more.
func (p *poster) close() {
	if p.conn != nil {
		p.stop()
		_ = p.conn.Close()
		p.conn = nil
	}
}

// retryAfter reads the header Retry-After: seconds or a date. It returns 0 if the header is invalid.
func retryAfter(header string, now time.Time) time.Duration {
	if header == "" {
		return 0
	}
	if s, err := strconv.ParseInt(header, 10, 32); err == nil {
		return max(0, time.Duration(s)*time.Second)
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
