package ssd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"github.com/shaledb/shale/internal/plot"
)

var (
	largeBytes = flag.Int64("large", 0, "bytes of the tier of TestLargeKill; 0: the test is skipped")
	largePlot  = flag.String("large-plot", "", "file for a chart of hit rates across the kills of TestLargeKill; needs memcached")
	largeDir   = flag.String("large-dir", "", "folder of the tier, in the processes that TestLargeKill starts and kills")
	largeFill  = flag.Bool("large-fill", false, "whether such a process fills the tier first")
)

const (
	largeValue = 16 << 10
	// largePhase is how long hits are counted before, between and after the kills, in windows of largeWindow
	// with largeGets reads each.
	largePhase  = 10 * time.Second
	largeWindow = 500 * time.Millisecond
	largeGets   = 500
)

// largeNumbered returns the value of a number, which differs from that of others.
func largeNumbered(n int) []byte {
	v := bytes.Repeat([]byte{byte(n)}, largeValue)
	binary.LittleEndian.PutUint64(v, uint64(n))
	return v
}

// largeRecords returns how many values are written: the log goes once around and a bit more, so that it has
// been reclaimed.
func largeRecords(bytes int64) int { return int(bytes/largeValue) * 11 / 10 }

// TestLargeProcess is the process that is killed. It says what it has, then how many of some values it finds
// for each line of its input.
func TestLargeProcess(t *testing.T) {
	if *largeDir == "" {
		t.Skip("it is started by TestLargeKill")
	}
	o := testOptions(vfs.Default)
	o.Dir, o.MaxBytes, o.Now = *largeDir, *largeBytes, time.Now
	o.IndexBytes, o.QueueBytes = 1<<30, 64<<20
	s, err := newStore(o)
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	records := largeRecords(*largeBytes)
	if *largeFill {
		for n := range records {
			s.write(write{offer: offer{key(n), largeNumbered(n)}, hash: key(n).Hash(), query: 1})
		}
	}
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	fmt.Printf("has %d %d %.1f %.2f %v\n", s.index.entries.Load(), s.index.bytes.Load(), float64(s.index.memory())/float64(s.index.entries.Load()), cpu.Seconds(), s.order())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var seed uint64
		var gets, hits int
		_, _ = fmt.Sscan(in.Text(), &seed, &gets) // its parent wrote them
		for _, n := range largeSample(seed, gets, records) {
			if bytes.Equal(s.Get(context.Background(), key(n), by(2)).Value, largeNumbered(n)) {
				hits++
			}
		}
		fmt.Printf("hits %d\n", hits)
	}
}

// largeSample returns numbers from the newer eight tenths of what was written, which a tier of that size
// holds.
func largeSample(seed uint64, gets, records int) (numbers []int) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range gets {
		numbers = append(numbers, records-1-r.IntN(records*8/10))
	}
	return numbers
}

// largeTier is a TestLargeProcess as its parent sees it.
type largeTier struct {
	dir     string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	entries int
	order   string
}

// begin starts the process and returns when it has said what it has.
func (l *largeTier) begin(t *testing.T, fill bool) {
	l.cmd = exec.Command(os.Args[0], "-test.run", "^TestLargeProcess$", "-test.timeout", "1h",
		"-large", strconv.FormatInt(*largeBytes, 10), "-large-dir", l.dir, "-large-fill="+strconv.FormatBool(fill))
	l.cmd.Stderr = os.Stderr
	var err error
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.out = bufio.NewReaderSize(out, 1<<20)
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var size int64
	var memory, cpu float64
	line := l.line(t)
	if _, err := fmt.Sscanf(line, "has %d %d %f %f", &l.entries, &size, &memory, &cpu); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	_, l.order, _ = strings.Cut(line, "[")
	t.Logf("%d records, %.1f GB, %.1f bytes of memory each, ready %.2f s after the start, %.2f s of them CPU", l.entries, float64(size)/1e9, memory, time.Since(began).Seconds(), cpu)
	began = time.Now()
	l.ask(t, 0, 1)
	t.Logf("first read answered %.3f s after that", time.Since(began).Seconds())
}

func (l *largeTier) line(t *testing.T) string {
	line, err := l.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the process has ended: %v", err)
	}
	return line
}

func (l *largeTier) ask(t *testing.T, seed uint64, gets int) (hits int) {
	fmt.Fprintf(l.in, "%d %d\n", seed, gets)
	if _, err := fmt.Sscanf(l.line(t), "hits %d", &hits); err != nil {
		t.Fatal(err)
	}
	return hits
}

func (l *largeTier) kill(t *testing.T) {
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = l.cmd.Wait() // it was killed
}

// dropPages takes the files of the tier out of the page cache of the kernel.
func (l *largeTier) dropPages(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(l.dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
		_ = f.Close() // nothing was written
	}
}

// largeCurve counts hits before two kills, and after them. A window in which no process answers has none.
func largeCurve(t *testing.T, name string, ask func(seed uint64, gets int) int, again func(kill int)) plot.Curve {
	c := plot.Curve{Name: name}
	began := time.Now()
	windows := int(largePhase / largeWindow)
	for w := range 3 * windows {
		if w == windows || w == 2*windows {
			before := c.Points[w-1][1]
			again(w / windows)
			t.Logf("%s: %d of the first %d reads are hits, of %.1f %% before the kill", name, ask(uint64(w), largeGets), largeGets, before)
		}
		time.Sleep(time.Duration(w)*largeWindow - time.Since(began))
		at := time.Since(began).Seconds()
		c.Points = append(c.Points, [2]float64{at, 100 * float64(ask(uint64(w), largeGets)) / largeGets})
	}
	return c
}

// TestLargeKill kills the process of a large tier twice by SIGKILL, the second time with its files out of the
// page cache of the kernel too, and measures how long the next process takes until it answers from the
// content. docs/cache.md has the figures and the chart, which has memcached with extstore, too.
func TestLargeKill(t *testing.T) {
	if *largeBytes == 0 {
		t.Skip("-large is not set")
	}
	l := &largeTier{dir: filepath.Join(t.TempDir(), "tier")}
	l.begin(t, true)
	cached := largeCurve(t, "Shale's SSD tier", func(seed uint64, gets int) int { return l.ask(t, seed, gets) }, func(n int) {
		entries, order := l.entries, l.order
		l.kill(t)
		if n == 2 {
			l.dropPages(t)
		}
		l.begin(t, false)
		if l.entries < entries*99/100 || l.order != order {
			t.Errorf("%d of %d records are left, in the order\n%s of\n%s", l.entries, entries, l.order, order)
		}
	})
	l.kill(t)
	if err := os.RemoveAll(l.dir); err != nil { // memcached needs the room
		t.Fatal(err)
	}
	for i, p := range cached.Points {
		if p[1] < 99 {
			t.Errorf("window %d: %.1f %% hits", i, p[1])
		}
	}
	if *largePlot == "" {
		return
	}
	chart := plot.Lines{
		Title: fmt.Sprintf("Hits across two kills, %d GB", *largeBytes/1e9), Unit: "%",
		Marks:  []plot.Mark{{At: largePhase.Seconds(), Name: "SIGKILL"}, {At: 2 * largePhase.Seconds(), Name: "SIGKILL, no page cache"}},
		Curves: []plot.Curve{cached, largeExtstore(t)},
	}
	if err := os.WriteFile(*largePlot, []byte(chart.SVG()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// largeExtstore is the curve of a memcached with extstore that was given the same values. A value that it
// does not find is stored again, as the cache of a bucket does.
func largeExtstore(t *testing.T) plot.Curve {
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close() // its port is memcached's
	_, port, _ := net.SplitHostPort(addr)
	var cmd *exec.Cmd
	var conn net.Conn
	var r *bufio.Reader
	begin := func() {
		cmd = exec.Command("memcached", "-u", "root", "-l", "127.0.0.1", "-U", "0", "-p", port, "-m", "1024",
			"-o", fmt.Sprintf("ext_path=%s:%dm", filepath.Join(dir, "extstore"), *largeBytes>>20))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			if conn, err = net.Dial("tcp", addr); err == nil {
				r = bufio.NewReaderSize(conn, 64<<10)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatal("memcached does not answer: ", err)
	}
	line := func() string {
		text, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	set := func(n int) {
		fmt.Fprintf(conn, "set p%d 0 0 %d\r\n%s\r\n", n, largeValue, largeNumbered(n))
		line()
	}
	begin()
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	records := largeRecords(*largeBytes)
	for n := range records {
		set(n)
	}
	value := make([]byte, largeValue+2)
	ask := func(seed uint64, gets int) (hits int) {
		for _, n := range largeSample(seed, gets, records) {
			fmt.Fprintf(conn, "get p%d\r\n", n)
			if !strings.HasPrefix(line(), "VALUE") {
				set(n)
				continue
			}
			if _, err := io.ReadFull(r, value); err != nil {
				t.Fatal(err)
			}
			line()
			if bytes.Equal(value[:largeValue], largeNumbered(n)) {
				hits++
			}
		}
		return hits
	}
	return largeCurve(t, "memcached 1.6 with extstore", ask, func(int) {
		_ = conn.Close()
		_, _ = cmd.Process.Kill(), cmd.Wait()
		begin()
	})
}
