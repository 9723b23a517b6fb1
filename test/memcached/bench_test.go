package main

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// BenchmarkRead reads values of 32 KiB from a real memcached by gomemcache, so many at a time. That of
// internal/memcache does the same with Shale's client.
func BenchmarkRead(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	_, port, _ := strings.Cut(addr, ":")
	server := exec.Command("memcached", "-l", "127.0.0.1", "-U", "0", "-p", port, "-u", "root", "-m", "64")
	if err := server.Start(); err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()
	})
	c := memcache.New(addr)
	c.Timeout = 5 * time.Second
	for end := time.Now().Add(30 * time.Second); c.Ping() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal("memcached does not answer")
		}
	}
	value := bytes.Repeat([]byte("v"), 32<<10)
	for i := range 64 {
		if err := c.Set(&memcache.Item{Key: fmt.Sprint("key", i), Value: value}); err != nil {
			b.Fatal(err)
		}
	}
	for _, batch := range []int{1, 16} {
		b.Run(fmt.Sprintf("keys=%d", batch), func(b *testing.B) {
			var keys []string
			for i := range batch {
				keys = append(keys, fmt.Sprint("key", i))
			}
			b.ReportAllocs()
			b.SetBytes(int64(batch * len(value)))
			for b.Loop() {
				if batch == 1 {
					if it, err := c.Get(keys[0]); err != nil || len(it.Value) != len(value) {
						b.Fatal(err)
					}
				} else if items, err := c.GetMulti(keys); err != nil || len(items) != batch {
					b.Fatal(len(items), err)
				}
			}
		})
	}
}
