//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/plot"
)

var memcachedPlot = flag.String("memcached-plot", "", "file for a chart of hits across a restart and a kill of `shale memcached serve` and of memcached")

const (
	restartKeys  = 8000
	restartValue = 16_000 // bytes
	// Each tick has so many gets, and a backend fills so many of those that are missing: 1,000 and 200 a second.
	restartTick  = 10 * time.Millisecond
	restartGets  = 10
	restartFills = 2
	// restartPhase is how long it runs before, between and after a restart and a kill.
	restartPhase = 60 * time.Second
)

// TestMemcachedRestartPlot draws the share of hits of a cache whose misses are filled at a bounded rate, as
// those of a bucket are, across an orderly restart and a kill.
func TestMemcachedRestartPlot(t *testing.T) {
	if *memcachedPlot == "" {
		t.Skip("it draws a chart for the documentation: -memcached-plot")
	}
	chart := plot.Lines{Title: "Hits across a restart and a kill", Unit: "%", Marks: []plot.Mark{
		{At: restartPhase.Seconds() / 4, Name: "SIGTERM"}, {At: restartPhase.Seconds() * 5 / 4, Name: "SIGKILL"},
	}}
	shale := shaleBinary(t)
	for _, kind := range []struct {
		name string
		args func(dir, port string) []string
	}{
		{"shale memcached serve", func(dir, port string) []string {
			return []string{shale, "memcached", "serve", "-p", port, "-m", "64", "--metrics", "", "--ssd", filepath.Join(dir, "cache") + ":512MiB", "--same-read", "1s"}
		}},
		{"memcached with extstore", func(dir, port string) []string {
			return []string{"memcached", "-u", "root", "-l", "127.0.0.1", "-U", "0", "-p", port, "-m", "64", "-o", "ext_path=" + filepath.Join(dir, "extstore") + ":512m"}
		}},
	} {
		dir, addr := t.TempDir(), freeAddr(t)
		_, port, _ := strings.Cut(addr, ":")
		command := kind.args(dir, port)
		var p *process
		again := func() { p = start(t, dir, "server", command[0], command[1:]...) }
		again()
		c := &restartClient{addr: addr, value: bytes.Repeat([]byte("v"), restartValue)}
		c.fill(t)
		curve := plot.Curve{Name: kind.name}
		began := time.Now()
		for _, phase := range []struct {
			end  syscall.Signal
			long time.Duration
		}{{syscall.SIGTERM, restartPhase / 4}, {syscall.SIGKILL, restartPhase}, {0, restartPhase}} {
			points := c.run(began, phase.long)
			curve.Points = append(curve.Points, points...)
			before, after := points[0][1], points[len(points)-1][1]
			t.Logf("%s: %.1f %% at first, %.1f %% at last", kind.name, before, after)
			for _, p := range points {
				if p[1] >= 99 {
					t.Logf("%s: 99 %% after %.1f s", kind.name, p[0]-points[0][0]+0.5)
					break
				}
			}
			if phase.end == 0 {
				break
			}
			if err := p.cmd.Process.Signal(phase.end); err != nil {
				t.Fatal(err)
			}
			<-p.done
			again()
		}
		p.stop(t)
		chart.Curves = append(chart.Curves, curve)
	}
	writeFile(t, *memcachedPlot, chart.SVG())
}

// restartClient asks for keys of a Zipf distribution at a rate.
type restartClient struct {
	addr  string
	conn  net.Conn
	r     *bufio.Reader
	value []byte
}

// ask stores or reads keys, and returns those that are not there. All are missing if there is no server.
func (c *restartClient) ask(keys []int, store bool) (missing []int) {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			return keys
		}
		c.conn, c.r = conn, bufio.NewReaderSize(conn, 64<<10)
	}
	missing, err := c.round(keys, store)
	if err != nil {
		c.conn.Close()
		c.conn = nil
		return keys
	}
	return missing
}

func (c *restartClient) round(keys []int, store bool) (missing []int, err error) {
	var out bytes.Buffer
	for _, k := range keys {
		if store {
			fmt.Fprintf(&out, "set k%d 0 0 %d\r\n%s\r\n", k, len(c.value), c.value)
		} else {
			fmt.Fprintf(&out, "get k%d\r\n", k)
		}
	}
	if _, err := c.conn.Write(out.Bytes()); err != nil {
		return nil, err
	}
	for _, k := range keys {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(line, "END") {
			missing = append(missing, k)
		}
		if strings.HasPrefix(line, "VALUE") {
			if _, err := c.r.Discard(len(c.value) + len("\r\nEND\r\n")); err != nil {
				return nil, err
			}
		}
	}
	return missing, nil
}

// fill stores all keys, and reads them until all are there.
func (c *restartClient) fill(t *testing.T) {
	t.Helper()
	for end, missing := time.Now().Add(2*time.Minute), 1; missing > 0; time.Sleep(1500 * time.Millisecond) {
		missing = 0
		for k := 0; k < restartKeys; k += restartGets {
			var keys []int
			for i := range restartGets {
				keys = append(keys, k+i)
			}
			lost := c.ask(keys, false)
			missing += len(lost)
			if len(lost) > 0 {
				c.ask(lost, true)
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d keys are not there", missing, restartKeys)
		}
	}
}

// run asks for a while, and returns the share of hits of each half second.
func (c *restartClient) run(began time.Time, long time.Duration) (points [][2]float64) {
	r := rand.New(rand.NewPCG(7, uint64(time.Since(began))))
	zipf := rand.NewZipf(r, 1.01, 100, restartKeys-1)
	const ticks = int(500 * time.Millisecond / restartTick)
	for at := time.Now(); len(points) < int(long/restartTick)/ticks; {
		hits := 0
		for range ticks {
			time.Sleep(time.Until(at))
			at = at.Add(restartTick)
			var keys []int
			for range restartGets {
				keys = append(keys, int(zipf.Uint64()*3001%restartKeys))
			}
			missing := c.ask(keys, false)
			hits += len(keys) - len(missing)
			if n := min(len(missing), restartFills); n > 0 && c.conn != nil {
				c.ask(missing[:n], true)
			}
		}
		points = append(points, [2]float64{time.Since(began).Seconds(), 100 * float64(hits) / float64(ticks*restartGets)})
	}
	return points
}
