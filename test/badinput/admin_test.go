//go:build e2e

package badinput

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

func admin() group {
	g := group{file: "admin", title: "/ready, /healthz, /metrics and /"}
	for _, path := range []string{"/ready", "/healthz", "/metrics", "/"} {
		for _, method := range []string{"POST", "PUT", "HEAD", "BREW"} {
			g.attacks = append(g.attacks, attack{input: method + " " + path, do: func(t *testing.T, s *server) (string, string) {
				req, err := http.NewRequest(method, "http://"+s.httpAddr+path, strings.NewReader("x"))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					return "failed", err.Error()
				}
				defer resp.Body.Close()
				body, _ := io.ReadAll(resp.Body)
				return fmt.Sprint(resp.StatusCode), string(body)
			}})
		}
	}
	return g
}

// connectionAttacks hold connections, memory or a place in a queue, and see whether other requests are
// served.
func connectionAttacks() group {
	g := group{file: "held-connections", title: "Held connections and memory"}
	hold := func(input string, n int, send string, meanwhile time.Duration) {
		g.attacks = append(g.attacks, attack{input: input, uncounted: true, do: func(t *testing.T, s *server) (string, string) {
			var conns []net.Conn
			for range n {
				conn, err := net.Dial("tcp", s.httpAddr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.(*net.TCPConn).SetReadBuffer(4096)
				_ = conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
				_, _ = conn.Write([]byte(send))
				conns = append(conns, conn)
			}
			time.Sleep(2 * time.Second) // until all buffers are full
			began := time.Now()
			patient := &http.Client{Timeout: meanwhile, Transport: &http.Transport{DisableKeepAlives: true}}
			ok := func(path string) string {
				resp, err := patient.Get("http://" + s.httpAddr + path)
				if err != nil {
					return fmt.Sprint("no response in ", meanwhile)
				}
				defer resp.Body.Close()
				body, _ := io.ReadAll(resp.Body)
				text := firstLine(body)
				if resp.StatusCode == http.StatusOK {
					text = ""
				}
				return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", text))
			}
			status, text := s.post(nil, message(series(good("bi_meanwhile"), one())))
			// /metrics is left out: it serves four requests at a time, and the speed of the machine decides
			// whether one of the four is free.
			outcome := fmt.Sprintf("meanwhile /ready %s; query %s; write %d %s", ok("/ready"), ok("/api/v1/query?query=1"), status, text)
			t.Logf("asked for %v", time.Since(began))
			for _, c := range conns {
				c.Close()
			}
			time.Sleep(200 * time.Millisecond)
			return outcome, ""
		}})
	}
	hold("20 connections that send nothing", 20, "", 15*time.Second)
	hold("32 connections that send half a header", connections, "GET / HTTP/1.1\r\nHost: s\r\n", 15*time.Second)
	hold("5 writes with Content-Length 4 MiB that send no body", 5,
		"POST /api/v1/write HTTP/1.1\r\nHost: s\r\nContent-Encoding: snappy\r\nContent-Length: 4194304\r\n\r\n", 15*time.Second)
	hold("8 writes that announce all of limits.inflight-bytes and send no body", 8,
		"POST /api/v1/write HTTP/1.1\r\nHost: s\r\nContent-Encoding: snappy\r\nContent-Length: 2013265\r\n\r\n", 15*time.Second)
	hold("8 clients that ask 2,000 times for /metrics and read nothing", 8, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: s\r\n\r\n", 2000), 15*time.Second)
	hold("8 clients that ask for a large response 200 times and read nothing", 8,
		strings.Repeat("GET /api/v1/series?match[]=bi_data HTTP/1.1\r\nHost: s\r\n\r\n", 200), 15*time.Second)
	hold("8 forms with Content-Length 1 MB that send no body", 8,
		"POST /api/v1/query HTTP/1.1\r\nHost: s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000000\r\n\r\n", 15*time.Second)
	g.attacks = append(g.attacks, attack{input: "a header a byte a second", do: func(t *testing.T, s *server) (string, string) {
		conn, err := net.Dial("tcp", s.httpAddr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() {
			for _, b := range []byte("GET /healthz HTTP/1.1\r\nHost: s\r\n\r\n") {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		// A server that waited for the whole header would answer 200.
		_ = conn.SetReadDeadline(time.Now().Add(hung))
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			return "closed", ""
		}
		return line, ""
	}})
	return g
}
