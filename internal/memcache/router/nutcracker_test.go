package router

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

var differential = flag.Int("requests", 6000, "random requests to compare with the real twemproxy")

// randomRequest returns a request that twemproxy takes, and whether it has a response.
func randomRequest(r *rand.Rand) (text string, answered bool) {
	key := func() string { return fmt.Sprintf("key%d", r.IntN(60)) }
	noreply := ""
	if r.IntN(6) == 0 {
		noreply = " noreply"
	}
	answered = noreply == ""
	switch r.IntN(12) {
	case 0, 1, 2:
		return "get " + key() + "\r\n", true
	case 3, 4:
		keys := ""
		for range 2 + r.IntN(10) {
			keys += " " + key()
		}
		return "get" + keys + "\r\n", true
	case 5:
		return "delete " + key() + noreply + "\r\n", answered
	case 6:
		// What expires does so at another time on each side. No decr: memcached keeps the length of a number that
		// gets shorter, unless another connection reads it.
		return fmt.Sprintf("%s %s %d%s\r\n", []string{"incr", "touch"}[r.IntN(2)], key(), 1000+r.IntN(1000), noreply), answered
	case 7:
		return fmt.Sprintf("set %s 0 0 2%s\r\n%d\r\n", key(), noreply, 10+r.IntN(90)), answered
	}
	value := strings.Repeat("v", r.IntN(300))
	if r.IntN(20) == 0 {
		value = strings.Repeat("w", r.IntN(60_000))
	}
	verb := []string{"set", "set", "add", "replace", "append", "prepend"}[r.IntN(6)]
	return fmt.Sprintf("%s %s %d %d %d%s\r\n%s\r\n", verb, key(), r.IntN(2)*7, r.IntN(2)*1000, len(value), noreply, value), answered
}

// TestDifferential sends the same random requests, pipelined and in pieces, to the router and to the real
// twemproxy, each in front of five servers: the responses are the same, byte for byte.
func TestDifferential(t *testing.T) {
	for _, more := range []string{"  distribution: ketama\n  hash: fnv1a_64\n", "  distribution: modula\n  hash: jenkins\n  hash_tag: \"{}\"\n"} {
		port := memcachetest.FreePort(t)
		memcachetest.StartNutcracker(t, config("127.0.0.1:"+port, more, memcacheds(t, 5)...), "127.0.0.1:"+port)
		addr, _, _ := start(t, more, memcacheds(t, 5)...)
		theirs, ours := dial(t, "127.0.0.1:"+port), dial(t, addr)
		r := rand.New(rand.NewPCG(13, 14))
		for sent := 0; sent < *differential; {
			var batch strings.Builder
			for range 1 + r.IntN(30) {
				text, _ := randomRequest(r)
				batch.WriteString(text)
				sent++
			}
			// A request without a response is complete when a later one to its server is: ask each key last.
			batch.WriteString("get end" + strings.Repeat(" end", 1) + "\r\nset end 0 0 3\r\nend\r\nget end\r\n")
			write(t, r, theirs, batch.String())
			write(t, r, ours, batch.String())
			want, got := readUntilEnd(t, theirs), readUntilEnd(t, ours)
			if got != want {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				from := max(0, at-100)
				t.Fatalf("%.3000q, at byte %d:\ngot  %.300q\nwant %.300q", batch.String(), at, got[from:], want[from:])
			}
			for _, c := range []*conn{theirs, ours} {
				c.ask("delete end\r\n", "DELETED\r\n")
			}
		}
	}
}

// write sends a text in random pieces, some of them of one byte.
func write(t *testing.T, r *rand.Rand, c *conn, text string) {
	t.Helper()
	for len(text) > 0 {
		n := len(text)
		switch r.IntN(4) {
		case 0:
			n = 1
		case 1:
			n = 1 + r.IntN(200)
		}
		n = min(n, len(text))
		if _, err := io.WriteString(c, text[:n]); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
}

func readUntilEnd(t *testing.T, c *conn) string {
	t.Helper()
	var got bytes.Buffer
	for !bytes.HasSuffix(got.Bytes(), []byte("VALUE end 0 3\r\nend\r\nEND\r\n")) {
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %.1000q", err, got.String())
		}
		got.WriteString(line)
	}
	return got.String()
}

// TestNoAllocations: a request on its way costs no allocation, of the router and of the client together.
func TestNoAllocations(t *testing.T) {
	addr, _, _ := start(t, "", memcacheds(t, 2)...)
	c := dial(t, addr)
	value := strings.Repeat("v", 1000)
	c.ask("set key 0 0 1000\r\n"+value+"\r\n", "STORED\r\n")
	ask, want := []byte("get key\r\n"), len("VALUE key 0 1000\r\n"+value+"\r\nEND\r\n")
	got := make([]byte, want)
	if n := testing.AllocsPerRun(2000, func() {
		if _, err := c.Write(ask); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c.r, got); err != nil {
			t.Fatal(err)
		}
	}); n > 0.1 {
		t.Errorf("%.2f allocations for each request", n)
	}
}

// BenchmarkRouter compares requests through the router, through twemproxy, and without either.
func BenchmarkRouter(b *testing.B) {
	servers := memcacheds(b, 1)
	port := memcachetest.FreePort(b)
	memcachetest.StartNutcracker(b, config("127.0.0.1:"+port, "", servers...), "127.0.0.1:"+port)
	addr, _, _ := start(b, "", servers...)
	for _, size := range []int{1000, 100_000} {
		for _, depth := range []int{1, 32} {
			for _, way := range []struct{ name, addr string }{{"direct", servers[0]}, {"nutcracker", "127.0.0.1:" + port}, {"router", addr}} {
				b.Run(fmt.Sprintf("%d/depth%d/%s", size, depth, way.name), func(b *testing.B) {
					conn, err := net.Dial("tcp", way.addr)
					if err != nil {
						b.Fatal(err)
					}
					defer conn.Close()
					_ = conn.SetDeadline(time.Now().Add(time.Minute))
					key, value := fmt.Sprintf("key%d", size), strings.Repeat("v", size)
					fmt.Fprintf(conn, "set %s 0 0 %d\r\n%s\r\n", key, size, value)
					if _, err := io.ReadFull(conn, make([]byte, len("STORED\r\n"))); err != nil {
						b.Fatal(err)
					}
					ask := []byte(strings.Repeat("get "+key+"\r\n", depth))
					got := make([]byte, depth*len(fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND\r\n", key, size, value)))
					b.SetBytes(int64(size))
					b.ResetTimer()
					for done := 0; done < b.N; done += depth {
						if _, err := conn.Write(ask); err != nil {
							b.Fatal(err)
						}
						if _, err := io.ReadFull(conn, got); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
