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
// http.Client passes through two more goroutines, and at the pace of a Prometheus, waking them cost as much
// CPU as making the body.
type poster struct {
	url    *url.URL
	common string
	header []byte // up to the tenant
	conn   net.Conn
	stop   func() bool // of what closes the connection when the context of its requests ends
	in     *bufio.Reader
	head   []byte
}

// answer is what became of one attempt.
type answer struct {
	code       int
	retryAfter time.Duration
	text       string
	written    written
}

// newPoster takes the lines of the head that describe bodies, each with its end.
func newPoster(u *url.URL, userAgent, bodies string) *poster {
	p := &poster{url: u, in: bufio.NewReader(nil)}
	p.common = "POST " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\nUser-Agent: " + userAgent + "\r\n"
	p.describe(bodies)
	return p
}

// describe changes the lines that describe bodies.
func (p *poster) describe(bodies string) { p.header = []byte(p.common + bodies) }

// post makes one attempt, as a tenant unless it is empty. All attempts of a poster have one context.
func (p *poster) post(ctx context.Context, compressed []byte, tenant string, attempt int) (answer, error) {
	if p.conn == nil {
		if err := p.dial(ctx); err != nil {
			return answer{}, err
		}
	}
	if err := p.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		p.close()
		return answer{}, err
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
		// A server that refuses may answer and hang up before it has read the body: then its answer counts.
		if err := p.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			p.close()
			return answer{}, writeErr
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

// receive reads the answer. The connection is reusable if nothing is left of it.
func (p *poster) receive() (got answer, reusable bool, err error) {
	resp, err := http.ReadResponse(p.in, nil)
	if err != nil {
		return answer{}, false, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
	if err != nil {
		return answer{}, false, err
	}
	// Answers that are longer are rare enough for a new connection.
	reusable = len(text) < maxErrorText && !resp.Close
	return answer{
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

// close gives up the connection, if there is one. What it returns is of no use any more.
func (p *poster) close() {
	if p.conn != nil {
		p.stop()
		_ = p.conn.Close()
		p.conn = nil
	}
}

// retryAfter reads the header of that name, seconds or a date. What makes no sense asks for no wait.
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
