package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Faults say what fails. Shares are of all requests, between 0 and 1. The zero value passes all requests on.
type Faults struct {
	// Delay is added to every request.
	Delay time.Duration
	// Errors is the share of requests that get Status (500 if it is 0) with the S3 error Code.
	Errors float64
	Status int
	Code   string
	// RetryAfter is the header of these errors, in seconds; 0: none.
	RetryAfter int
	// Stalls is the share of requests that wait for Stall before they are passed on.
	Stalls float64
	Stall  time.Duration
	// Truncated is the share of reads whose body is cut off in the middle. A read is a GET, and a POST if
	// PostsRead is set.
	Truncated float64
	PostsRead bool
	// PerSecond is the most requests per second that are passed on; others get 503 SlowDown. 0: no limit.
	PerSecond float64
}

// Counts are what a proxy has seen.
type Counts struct {
	// Requests were received, and Faulty of them failed, stalled or were truncated.
	Requests, Faulty int64
	// Bytes are those of the bodies of responses.
	Bytes int64
	// BusiestSecond is the greatest number of requests in a second.
	BusiestSecond int64
}

// Proxy passes requests to a server. It is safe for concurrent use.
type Proxy struct {
	// URL is its address.
	URL string

	server *http.Server
	next   *httputil.ReverseProxy
	served sync.WaitGroup

	mu       sync.Mutex
	faults   Faults
	random   *rand.Rand
	counts   Counts
	second   int64
	inSecond int64
	tokens   float64
	filled   time.Time
}

// Start serves a proxy to the server at target on a free loopback port.
func Start(target string) (*Proxy, error) { return Listen("127.0.0.1:0", target) }

// Listen serves a proxy to the server at target on an address.
func Listen(addr, target string) (*Proxy, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &Proxy{URL: "http://" + l.Addr().String(), random: rand.New(rand.NewPCG(1, 2)), filled: time.Now()}
	p.next = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host // the signature covers it
		},
		Transport:      &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		ModifyResponse: p.count,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				fail(w, Faults{Status: http.StatusBadGateway, Code: "InternalError"})
			}
		},
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute}
	p.served.Go(func() { _ = p.server.Serve(l) })
	return p, nil
}

// Close ends the proxy and cuts its connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.served.Wait()
	return err
}

// Inject replaces the faults.
func (p *Proxy) Inject(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.tokens, p.filled = f, f.PerSecond/10, time.Now()
}

// Counts returns what the proxy has seen since the last call of Reset.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Reset sets the counts to 0.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts, p.second, p.inSecond = Counts{}, 0, 0
}

// fate is what happens to a request.
type fate struct {
	Faults
	fails, stalls, truncated bool
}

// draw counts a request and decides about it.
func (p *Proxy) draw(method string) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if s := now.Unix(); s != p.second {
		p.second, p.inSecond = s, 0
	}
	p.inSecond++
	p.counts.Requests++
	p.counts.BusiestSecond = max(p.counts.BusiestSecond, p.inSecond)
	f := fate{Faults: p.faults}
	if f.PerSecond > 0 {
		p.tokens = min(f.PerSecond/10, p.tokens+f.PerSecond*now.Sub(p.filled).Seconds())
		p.filled = now
		if p.tokens < 1 {
			f.fails, f.Status, f.Code = true, http.StatusServiceUnavailable, "SlowDown"
			p.counts.Faulty++
			return f
		}
		p.tokens--
	}
	switch x := p.random.Float64(); {
	case x < f.Errors:
		f.fails = true
	case x < f.Errors+f.Stalls:
		f.stalls = true
	case x < f.Errors+f.Stalls+f.Truncated && (method == http.MethodGet || f.PostsRead && method == http.MethodPost):
		f.truncated = true
	default:
		return f
	}
	p.counts.Faulty++
	return f
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	f := p.draw(r.Method)
	delay := f.Delay
	if f.stalls {
		delay += f.Stall
	}
	if delay > 0 && !sleep(r.Context(), delay) {
		return
	}
	if f.fails {
		fail(w, f.Faults)
		return
	}
	// A server may answer before all of the request was passed on. Then the body would be closed while it is
	// read, and the response cut. With EnableFullDuplex it is not, but in one of several runs of the tests this
	// proxy then answered 400 to a sound request.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has left
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if f.truncated {
		w = &cutWriter{ResponseWriter: w}
	}
	p.next.ServeHTTP(w, r)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// fail writes an error as S3 does.
func fail(w http.ResponseWriter, f Faults) {
	status, code := f.Status, f.Code
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if code == "" {
		code = "InternalError"
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>`+code+`</Code><Message>injected fault</Message></Error>`)
}

// count counts the bytes of a response.
func (p *Proxy) count(r *http.Response) error {
	r.Body = &countedBody{r.Body, p}
	return nil
}

type countedBody struct {
	io.ReadCloser
	p *Proxy
}

func (b *countedBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.p.mu.Lock()
	b.p.counts.Bytes += int64(n)
	b.p.mu.Unlock()
	return n, err
}

// cutWriter cuts the connection after the first half of a body, or of its first piece if its length is not
// known.
type cutWriter struct {
	http.ResponseWriter
	left  int64
	cut   bool
	piece bool // the first piece says where it is cut
}

var errCut = errors.New("the proxy cuts the body")

func (w *cutWriter) WriteHeader(status int) {
	length, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64)
	w.left, w.cut, w.piece = length/2, true, err != nil
	w.ResponseWriter.WriteHeader(status)
}

func (w *cutWriter) Write(data []byte) (int, error) {
	if !w.cut {
		return w.ResponseWriter.Write(data)
	}
	if w.piece {
		w.left, w.piece = int64(len(data)/2), false
	}
	n := min(int64(len(data)), w.left)
	w.left -= n
	if _, err := w.ResponseWriter.Write(data[:n]); err != nil {
		return 0, err
	}
	if n < int64(len(data)) {
		// Else the client may see none of it, and take the request for one that was not answered.
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		return int(n), errCut // ReverseProxy aborts the response
	}
	return int(n), nil
}
