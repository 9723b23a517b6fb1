package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

// TestBenchServer is a server in a process of its own, for BenchmarkServer.
func TestBenchServer(t *testing.T) {
	dir := os.Getenv("SHALE_BENCH_DIR")
	if dir == "" {
		t.Skip("it is the server of BenchmarkServer")
	}
	o := Options{Memory: 256 << 20, MaxItem: 1 << 20, MaxConns: 100, SameRead: time.Second}
	if dir != "none" {
		o.Memory, o.DiskMemory = 64<<20, 24<<20
		var err error
		if o.Disk, err = ssd.Open(ssd.Options{
			FS: vfs.Default, Dir: dir, MaxBytes: 2 << 30, Limits: ssd.Limits{WritesPerDay: 1000}, IndexBytes: 8 << 20, QueueBytes: 16 << 20,
			Mutable: true, Boot: boot(), Registerer: prometheus.NewRegistry(),
		}); err != nil {
			t.Fatal(err)
		}
	}
	_, addr := start(t, o)
	fmt.Println("serving " + addr)
	select {}
}

// child runs a test of this binary that serves, and returns its address. It ends with its test.
func child(t testing.TB, test, env string) (cmd *exec.Cmd, addr string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) && !strings.Contains(err.Error(), "already called") {
			t.Error(err)
		}
	})
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if addr, ok := strings.CutPrefix(strings.TrimSpace(line), "serving "); ok {
			return cmd, addr
		}
	}
}

// benchClients is how many connections a benchmark has.
const benchClients = 4

// benchClient sends n requests for random keys, so many at a time.
func benchClient(addr string, seed uint64, set bool, keys, size, depth, n int) (hits int, err error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = nc.Close() }()
	r, value := bufio.NewReaderSize(nc, 256<<10), strings.Repeat("v", size)
	var request []byte
	for n > 0 {
		batch := min(depth, n)
		n -= batch
		request = request[:0]
		for range batch {
			seed = seed*6364136223846793005 + 1442695040888963407
			key := int(seed >> 33 % uint64(keys))
			if set {
				request = append(strconv.AppendInt(append(request, "set key"...), int64(key), 10), " 0 0 "...)
				request = append(append(strconv.AppendInt(request, int64(size), 10), "\r\n"...), value...)
			} else {
				request = strconv.AppendInt(append(request, "get key"...), int64(key), 10)
			}
			request = append(request, "\r\n"...)
		}
		if _, err := nc.Write(request); err != nil {
			return hits, err
		}
		for range batch {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return hits, err
			}
			if line[0] == 'V' {
				hits++
				if _, err := r.Discard(size + len("\r\nEND\r\n")); err != nil {
					return hits, err
				}
			}
		}
	}
	return hits, nil
}

// BenchmarkServer compares this server with memcached: rates of four clients on the loopback interface, and
// the share of gets that hit. With a disk, most values are there and not in memory.
func BenchmarkServer(b *testing.B) {
	extstore := []string{"-m", "64", "-o", "ext_page_size=8,ext_wbuf_size=8,ext_threads=4,ext_path=" + b.TempDir() + "/ext:2g"}
	servers := []struct {
		name  string
		start func(b *testing.B) string
		disk  bool
	}{
		{"memcached", func(b *testing.B) string { return memcachetest.Start(b, "-m", "256").Addr }, false},
		{"serve", func(b *testing.B) string { _, addr := child(b, "TestBenchServer", "SHALE_BENCH_DIR=none"); return addr }, false},
		{"extstore", func(b *testing.B) string { return memcachetest.Start(b, extstore...).Addr }, true},
		{"serve-ssd", func(b *testing.B) string {
			_, addr := child(b, "TestBenchServer", "SHALE_BENCH_DIR="+b.TempDir())
			return addr
		}, true},
	}
	for _, s := range servers {
		for _, size := range []int{1000, 100_000} {
			total := 50 << 20
			if s.disk {
				total = 100 << 20
				if size > 1000 {
					total = 300 << 20
				}
			}
			keys := total / size
			b.Run(fmt.Sprintf("%s/%d", s.name, size), func(b *testing.B) {
				addr := s.start(b)
				for range 3 { // what is stored again after a second is worth the disk
					if err := fill(addr, keys, size); err != nil {
						b.Fatal(err)
					}
					time.Sleep(1100 * time.Millisecond)
				}
				for _, set := range []bool{false, true} {
					for _, depth := range []int{1, 32} {
						b.Run(fmt.Sprintf("set=%v/depth=%d", set, depth), func(b *testing.B) {
							var done sync.WaitGroup
							var mu sync.Mutex
							hits := 0
							for n := range benchClients {
								done.Go(func() {
									got, err := benchClient(addr, uint64(n+1)*7919, set, keys, size, depth, b.N/benchClients+1)
									mu.Lock()
									defer mu.Unlock()
									if hits += got; err != nil {
										b.Error(err)
									}
								})
							}
							done.Wait()
							b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
							if !set {
								b.ReportMetric(100*float64(hits)/float64(b.N), "hit%")
							}
						})
					}
				}
			})
		}
	}
}

// fill stores all keys once.
func fill(addr string, keys, size int) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }()
	w, value := bufio.NewWriterSize(nc, 256<<10), strings.Repeat("v", size)
	for n := range keys {
		if _, err := fmt.Fprintf(w, "set key%d 0 0 %d noreply\r\n%s\r\n", n, size, value); err != nil {
			return err
		}
	}
	if _, err := w.WriteString("mn\r\n"); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = io.ReadFull(nc, make([]byte, len("MN\r\n")))
	return err
}
