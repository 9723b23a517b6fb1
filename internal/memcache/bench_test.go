package memcache

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

// BenchmarkRead reads values of 32 KiB from a real memcached, so many at a time. That of
// test/memcached does the same with gomemcache.
func BenchmarkRead(b *testing.B) {
	s := memcachetest.Start(b, "-m", "64")
	c := newClient(b, Options{Servers: []string{s.Addr}})
	value := strings.Repeat("v", 32<<10)
	for i := range 64 {
		call := []Call{set(fmt.Sprint("key", i), value)}
		if c.Write(context.Background(), soon(), call); call[0].Err != nil {
			b.Fatal(call[0].Err)
		}
	}
	for _, batch := range []int{1, 16} {
		b.Run(fmt.Sprintf("keys=%d", batch), func(b *testing.B) {
			requests := make([]Call, batch)
			for i := range requests {
				requests[i] = get(fmt.Sprint("key", i))
			}
			calls := make([]Call, batch)
			late := 0
			b.ReportAllocs()
			b.SetBytes(int64(batch * len(value)))
			for b.Loop() {
				copy(calls, requests)
				c.Read(context.Background(), soon(), calls)
				for i := range calls {
					switch {
					case calls[i].Err != nil:
						late++ // it does not wait for a server that is slower than usual
					case len(calls[i].Data) != len(value):
						b.Fatalf("%d bytes", len(calls[i].Data))
					}
				}
			}
			b.ReportMetric(float64(late)/float64(b.N*batch), "late/key")
		})
	}
}
