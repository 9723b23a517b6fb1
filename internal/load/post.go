package load

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// The waits between attempts are those of a Prometheus with its defaults.
const (
	minBackoff     = 30 * time.Millisecond
	maxBackoff     = 5 * time.Second
	requestTimeout = 30 * time.Second
)

// poster sends one request at a time.
type poster struct {
	client    *http.Client
	url       string
	tenant    string
	userAgent string
}

// answer is what became of one attempt.
type answer struct {
	code       int
	retryAfter time.Duration
	text       string
}

// post makes one attempt. The body may be changed as soon as it has returned.
func (p *poster) post(ctx context.Context, compressed []byte, attempt int) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body := &heldBody{Reader: bytes.NewReader(compressed), closed: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, body)
	if err != nil {
		return answer{}, err
	}
	req.ContentLength = int64(len(compressed))
	h := req.Header
	h.Set("Content-Encoding", "snappy")
	h.Set("Content-Type", "application/x-protobuf")
	h.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	h.Set("User-Agent", p.userAgent)
	if p.tenant != "" {
		h.Set("X-Scope-OrgID", p.tenant)
	}
	if attempt > 0 {
		h.Set("Retry-Attempt", strconv.Itoa(attempt))
	}
	resp, err := p.client.Do(req)
	if err != nil {
		<-body.closed
		return answer{}, err
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // only for a message; the status decides
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close()
	<-body.closed
	return answer{
		code: resp.StatusCode, text: string(bytes.TrimSpace(text)),
		retryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}, nil
}

// heldBody tells when the transport has let go of it: that may be later than the answer, and the next request is
// built in the same memory.
type heldBody struct {
	*bytes.Reader
	once   sync.Once
	closed chan struct{}
}

// Close lets go of the body.
func (b *heldBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
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

// fate says what a sender does about an answer.
type fate uint8

const (
	stored fate = iota
	again
	refused
)

func (a answer) fate(retry429 bool) fate {
	switch {
	case a.code/100 == 2:
		return stored
	case a.code/100 == 5, a.code == http.StatusTooManyRequests && retry429:
		return again
	}
	return refused
}
