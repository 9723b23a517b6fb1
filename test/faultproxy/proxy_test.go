package faultproxy

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestFaults: each fault reaches the client, and the rest passes unchanged.
func TestFaults(t *testing.T) {
	body := strings.Repeat("0123456789", 10_000)
	real := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Host", r.Host)
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, body)
	}))
	defer real.Close()
	p, err := Start(real.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	get := func() (status int, data string, header http.Header, err error) {
		resp, err := http.Get(p.URL + "/bucket/object")
		if err != nil {
			return 0, "", nil, err
		}
		defer resp.Body.Close()
		read, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(read), resp.Header, err
	}
	if status, data, h, err := get(); status != 200 || data != body || err != nil || h.Get("X-Host") != strings.TrimPrefix(p.URL, "http://") {
		t.Errorf("%d, %d bytes, %v, host %s", status, len(data), err, h.Get("X-Host"))
	}
	p.Inject(Faults{Errors: 1, Status: 503, Code: "SlowDown", RetryAfter: 7})
	if status, data, h, err := get(); status != 503 || !strings.Contains(data, "<Code>SlowDown</Code>") || h.Get("Retry-After") != "7" || err != nil {
		t.Errorf("%d, %s, %v, %v", status, data, h, err)
	}
	p.Inject(Faults{Truncated: 1})
	if status, data, _, err := get(); status != 200 || len(data) > len(body)/2 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d, %d bytes, %v", status, len(data), err)
	}
	p.Inject(Faults{Stalls: 1, Stall: 50 * time.Millisecond, Delay: 10 * time.Millisecond})
	began := time.Now()
	if status, data, _, err := get(); status != 200 || data != body || err != nil || time.Since(began) < 60*time.Millisecond {
		t.Errorf("%d, %d bytes, %v after %s", status, len(data), err, time.Since(began))
	}
	if c := p.Counts(); c.Requests != 4 || c.Faulty != 3 || c.Bytes < 250_000 {
		t.Errorf("%+v", c)
	}
	p.Reset()
	p.Inject(Faults{PerSecond: 20})
	refused := 0
	for range 10 {
		if status, _, _, _ := get(); status == 503 {
			refused++
		}
	}
	if refused < 5 {
		t.Errorf("%d of 10 requests at once were refused, 20 a second are allowed", refused)
	}
}

// TestEarlyResponse: a response passes that the server has begun before it has read the request.
func TestEarlyResponse(t *testing.T) {
	body := strings.Repeat("0123456789", 100_000)
	real := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, body[:10])
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, body[10:])
	}))
	defer real.Close()
	p, err := Start(real.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 20 {
		request, more := io.Pipe()
		go func() {
			_, _ = io.WriteString(more, strings.Repeat("x", 1000))
			time.Sleep(5 * time.Millisecond) // the response has begun
			_, _ = io.WriteString(more, strings.Repeat("x", 1000))
			more.Close()
		}()
		resp, err := http.Post(p.URL, "text/plain", request)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(data) != body {
			t.Fatalf("%d of %d bytes, %v", len(data), len(body), err)
		}
	}
	p.Inject(Faults{Truncated: 1, PostsRead: true})
	resp, err := http.Post(p.URL, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); len(data) == 0 || len(data) >= len(body) || err == nil {
		t.Errorf("%d of %d bytes, %v", len(data), len(body), err)
	}
}
