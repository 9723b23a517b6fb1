//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// routerClients are the clients of TestRouterClients. Each takes a file descriptor here and in the router.
const routerClients = 10_000

// routerBytes bounds what the router may take for a client.
const routerBytes = 24 << 10

// TestRouterClients: ten thousand clients at one time, each with its own values. Some stop in the middle of a
// request, some send no more and wait for their responses, some are gone: the others notice nothing, no
// client gets a stranger's value, and memory is bounded.
func TestRouterClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := "p:\n  listen: " + freeAddr(t) + "\n  servers:\n"
	listen := strings.Fields(conf)[2]
	for i := range 2 {
		addr := freeAddr(t)
		_, port, _ := strings.Cut(addr, ":")
		start(t, dir, fmt.Sprint("memcached-", i), "memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", port, "-m", "64")
		conf += fmt.Sprintf("   - %s:1 server%d\n", addr, i)
	}
	metrics := freeAddr(t)
	p := start(t, dir, "router", shaleBinary(t), "memcached", "router", "-c", writeFile(t, filepath.Join(dir, "router.yml"), conf), "-s", "0", "--metrics", metrics)
	p.waitFor(t, "http://"+metrics+"/metrics")
	resident := func() int {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return kilobytes << 10
	}
	before := resident()

	type client struct {
		net.Conn
		r *bufio.Reader
	}
	all := make([]client, routerClients)
	t.Cleanup(func() {
		for _, c := range all {
			if c.Conn != nil {
				_ = c.Close()
			}
		}
	})
	// each runs fn for clients, many at a time, and ends the test after the first error.
	each := func(from, to int, fn func(i int, c *client) error) {
		t.Helper()
		var mu sync.Mutex
		var first error
		next := from
		var workers sync.WaitGroup
		for range 64 {
			workers.Go(func() {
				for {
					mu.Lock()
					i := next
					next++
					stop := first != nil || i >= to
					mu.Unlock()
					if stop {
						return
					}
					if err := fn(i, &all[i]); err != nil {
						mu.Lock()
						if first == nil {
							first = fmt.Errorf("client %d: %w", i, err)
						}
						mu.Unlock()
					}
				}
			})
		}
		workers.Wait()
		if first != nil {
			t.Fatal(first)
		}
	}
	value := func(i, round int) string { return fmt.Sprintf("%d.%d.%s", i, round, strings.Repeat("v", i%500)) }
	send := func(i int, c *client, round int) error {
		v := value(i, round)
		_, err := fmt.Fprintf(c, "set k%d 0 0 %d\r\n%s\r\nget k%d\r\n", i, len(v), v, i)
		return err
	}
	receive := func(i int, c *client, round int) error {
		v := value(i, round)
		want := fmt.Sprintf("STORED\r\nVALUE k%d 0 %d\r\n%s\r\nEND\r\n", i, len(v), v)
		got := make([]byte, len(want))
		if n, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
			return fmt.Errorf("got %.100q, %v, want %.100q", got[:n], err, want)
		}
		return nil
	}
	each(0, routerClients, func(i int, c *client) error {
		conn, err := net.DialTimeout("tcp", listen, time.Minute)
		if err != nil {
			return err
		}
		*c = client{conn, bufio.NewReaderSize(conn, 1<<10)}
		return conn.SetDeadline(time.Now().Add(5 * time.Minute))
	})
	// All have asked before any of them reads.
	for round := range 2 {
		each(0, routerClients, func(i int, c *client) error { return send(i, c, round) })
		each(0, routerClients, func(i int, c *client) error { return receive(i, c, round) })
	}
	if a := (resident() - before) / routerClients; a > routerBytes {
		t.Errorf("a client takes %d bytes, want at most %d", a, routerBytes)
	} else {
		t.Logf("a client takes %d bytes", a)
	}

	const part = routerClients / 10
	each(0, part, func(i int, c *client) error { // they stop in the middle of a request
		_, err := io.WriteString(c, "set stuck 0 0 100\r\nhalf")
		return err
	})
	each(part, 2*part, func(i int, c *client) error { // they send no more
		if err := send(i, c, 2); err != nil {
			return err
		}
		return c.Conn.(*net.TCPConn).CloseWrite()
	})
	each(2*part, 3*part, func(i int, c *client) error { // they are gone
		if err := send(i, c, 2); err != nil {
			return err
		}
		if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil {
			return err
		}
		return c.Close()
	})
	each(3*part, routerClients, func(i int, c *client) error { return send(i, c, 2) })
	each(3*part, routerClients, func(i int, c *client) error { return receive(i, c, 2) })
	each(part, 2*part, func(i int, c *client) error {
		if err := receive(i, c, 2); err != nil {
			return err
		}
		if b, err := c.r.ReadByte(); err != io.EOF {
			return fmt.Errorf("after the last response: %q, %v, want the end", b, err)
		}
		return nil
	})
}
