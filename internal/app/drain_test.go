package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/app/conns"
)

// TestStopDoesNotWaitForStalledClients: clients that send half a header, half a body or nothing, or that do
// not read, delay a stop by two seconds. The server names them, and ends without an error.
func TestStopDoesNotWaitForStalledClients(t *testing.T) {
	s := startServer(t, t.TempDir())
	addr := strings.TrimPrefix(s.url, "http://")
	send := func(text string) net.Conn {
		c, err := net.Dial("tcp", addr)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		_, err = io.WriteString(c, text)
		must(t, err)
		return c
	}
	send("")
	send("GET /api/v1/query?query=1 HTTP/1.1\r\nHost: x\r\n")
	send("POST /api/v1/write HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
	idle := send("GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(idle), nil)
	must(t, err)
	r.Body.Close()
	// It asks for more than the buffers of a connection hold, and does not read.
	deaf := send("")
	must(t, deaf.(*net.TCPConn).SetReadBuffer(4<<10))
	for range 400 {
		_, err = fmt.Fprint(deaf, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
		must(t, err)
	}
	for begun := time.Now(); !writes(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("no response has filled the buffers of its connection")
		}
	}

	began := time.Now()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > conns.DrainTime/2 {
		t.Errorf("the stop took %s", took)
	}
	for _, want := range []string{
		`request="POST /api/v1/write" waited_for="the body of the request"`, `waited_for="the header of a request"`,
		`request="GET /metrics" waited_for="the client to read the response"`,
	} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, s.log)
		}
	}
}

// writes reports whether a response waits for its client, as the network poller sees it.
func writes() bool {
	stacks := make([]byte, 8<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if first, rest, _ := strings.Cut(stack, "\n"); strings.Contains(first, "[IO wait") && strings.Contains(rest, "conns.(*connection).Write(") {
			return true
		}
	}
	return false
}

// TestRefusalDoesNotWaitForTheBody: a request whose body is too large is refused at once, though the client
// waits for the response before it sends the body, as with Expect: 100-continue.
func TestRefusalDoesNotWaitForTheBody(t *testing.T) {
	s := startServer(t, t.TempDir())
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must(t, err)
	defer c.Close()
	must(t, c.SetReadDeadline(time.Now().Add(30*time.Second))) // the server reads for a minute at most
	_, err = fmt.Fprintf(c, "POST /api/v1/write HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", int64(1)<<62)
	must(t, err)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("expected a refusal, got %v", err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusRequestEntityTooLarge || !r.Close {
		t.Errorf("expected 413 and the end of the connection, got %d, close %v", r.StatusCode, r.Close)
	}
	must(t, s.stop())
}
