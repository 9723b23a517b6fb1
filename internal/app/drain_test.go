package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
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
	time.Sleep(time.Second)

	began := time.Now()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > drainTime/2 {
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
