package memcache

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestConnectionsThatEndAtOnce: a server describes itself and then ends each connection. Goroutines that wait
// for a connection, which another one has found broken and dials again, get one or an error.
func TestConnectionsThatEndAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepted sync.WaitGroup
	accepted.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Go(func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				for range 2 { // version, stats settings
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					text := "END\r\n"
					if strings.HasPrefix(line, "version") {
						text = "VERSION 1.6.18\r\n"
					}
					if _, err := io.WriteString(conn, text); err != nil {
						return
					}
				}
			})
		}
	})
	defer accepted.Wait()
	defer l.Close()
	line := newClient(t, Options{Servers: []string{l.Addr().String()}}).ring.Load().nodes[0].reads[0]
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for range 300 {
				conn, err := line.get(context.Background(), time.Now().Add(time.Second))
				if conn == nil && err == nil {
					t.Error("neither a connection nor an error")
					return
				}
			}
		})
	}
	clients.Wait()
}
