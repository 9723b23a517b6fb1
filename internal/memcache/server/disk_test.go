package server

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache/ssd"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

// diskOptions are those of a server with a small memory and a disk. Any read after a second is worth a write.
func diskOptions(t testing.TB, dir string) Options {
	t.Helper()
	o := testOptions()
	o.Memory, o.MaxItem, o.SameRead = 24<<20, 1<<20, time.Second
	var err error
	o.DiskMemory = 6 << 20
	o.Disk, err = ssd.Open(ssd.Options{
		FS: vfs.Default, Dir: dir, MaxBytes: ssd.MinBytes, Limits: ssd.Limits{WritesPerDay: 1000}, IndexBytes: 2 << 20, QueueBytes: 4 << 20,
		Mutable: true, Boot: boot(), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRestart: what a server held is there after a restart, with flags and expiry, and what was deleted or
// replaced is not.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	s, err := New(diskOptions(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(l)
	c := dial(t, l.Addr().String())
	c.ask("set a 7 0 5\r\nfirst\r\nset b 0 1000 1\r\nx\r\nset c 0 0 1\r\nx\r\nset gone 0 -1 1\r\nx\r\nms Zm8g 1 b\r\ny\r\n", "STORED\r\nSTORED\r\nSTORED\r\nSTORED\r\nHD\r\n")
	c.ask("set stale 0 0 1\r\nx\r\nmd stale I\r\n", "STORED\r\nHD\r\n")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, addr := start(t, diskOptions(t, dir))
	c = dial(t, addr)
	c.ask("mg stale v\r\nmg stale v\r\n", "VA 1 X W\r\nx\r\nVA 1 Z X\r\nx\r\n")
	c.ask("get a\r\nmg b v\r\nmg b t\r\nget gone\r\nmg Zm8g b k v\r\n", "VALUE a 7 5\r\nfirst\r\nEND\r\nVA 1\r\nx\r\nHD t")
	if line, err := c.r.ReadString('\n'); err != nil || len(line) < 4 {
		t.Fatalf("%q, %v", line, err)
	}
	c.ask("", "END\r\nVA 1 kZm8g b\r\ny\r\n")
	c.ask("delete a\r\nset b 0 0 3\r\nnew\r\nincr c 1\r\ntouch none 0\r\n", "DELETED\r\nSTORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nNOT_FOUND\r\n")
	c.ask("get a\r\nget b\r\n", "END\r\nVALUE b 0 3\r\nnew\r\nEND\r\n")
	if n := s.disk.Stats(); n.Entries < 2 {
		t.Errorf("%d records on the disk", n.Entries)
	}
	c.ask("flush_all\r\nget c\r\n", "OK\r\nEND\r\n")
	if n := s.disk.Stats(); n.Entries != 0 {
		t.Errorf("%d records on the disk after a flush", n.Entries)
	}
}

// TestDiskHits: what memory has no room for comes from the disk.
func TestDiskHits(t *testing.T) {
	s, addr := start(t, diskOptions(t, t.TempDir()))
	c := dial(t, addr)
	value := strings.Repeat("v", 20_000)
	const items = 1000
	for n := range items {
		c.ask(fmt.Sprintf("set key%d 0 0 %d\r\n%s\r\n", n, len(value), value), "STORED\r\n")
	}
	// Read later than they were stored, so that they are worth a write.
	for end := time.Now().Add(10 * patience); s.disk.Stats().Entries < items/4 && time.Now().Before(end); {
		for n := range items {
			if _, err := fmt.Fprintf(c, "mg key%d\r\n", n); err != nil {
				t.Fatal(err)
			}
			line, err := c.r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "EN\r\n" {
				c.ask(fmt.Sprintf("set key%d 0 0 %d\r\n%s\r\n", n, len(value), value), "STORED\r\n")
			}
		}
	}
	hits := 0
	for n := range items {
		if _, err := fmt.Fprintf(c, "mg key%d s\r\n", n); err != nil {
			t.Fatal(err)
		}
		if line, err := c.r.ReadString('\n'); err != nil || line == "HD s20000\r\n" {
			hits++
		}
	}
	d := s.disk.Stats()
	counts := s.items.Counts()
	if hits < items/4 || d.Entries < items/4 {
		t.Errorf("%d hits of %d, %d items on the disk: %+v, %v", hits, items, d.Entries, d, counts)
	}
}

// TestDrain: a successor gets what a server has in memory and on disk, and keeps what it has itself.
func TestDrain(t *testing.T) {
	for _, to := range []string{"shale", "memcached"} {
		t.Run(to, func(t *testing.T) {
			dir := t.TempDir()
			first, err := New(diskOptions(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			first.Serve(l)
			c := dial(t, l.Addr().String())
			for n := range 1500 {
				c.ask(fmt.Sprintf("set key%d %d 1000 6\r\nvalue%d\r\n", n, n, n%10), "STORED\r\n")
			}
			c.ask("ms Zm8g 1 b\r\ny\r\n", "HD\r\n")
			if err := first.Close(); err != nil { // to the disk
				t.Fatal(err)
			}
			s, err := New(diskOptions(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			s.Serve(l)
			dial(t, l.Addr().String()).ask("set memory 3 0 1\r\nm\r\nset key7 1 0 3\r\nnew\r\n", "STORED\r\nSTORED\r\n")
			var addr string
			if to == "shale" {
				_, addr = start(t, testOptions())
			} else {
				addr = memcachetest.Start(t).Addr
			}
			successor := dial(t, addr)
			successor.ask("set key9 0 0 4\r\nmine\r\n", "STORED\r\n")
			s.StopServing()
			if err := s.DrainTo(t.Context(), addr); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			successor.ask("get key1499 memory key7 key9\r\nmg Zm8g b k v\r\n",
				"VALUE key1499 1499 6\r\nvalue9\r\nVALUE memory 3 1\r\nm\r\nVALUE key7 1 3\r\nnew\r\nVALUE key9 0 4\r\nmine\r\nEND\r\nVA 1 kZm8g b\r\ny\r\n")
		})
	}
}

// TestRace runs commands on few keys from many connections, with a disk: a value is always whole, and of its
// key.
func TestRace(t *testing.T) {
	_, addr := start(t, diskOptions(t, t.TempDir()))
	var done sync.WaitGroup
	for worker := range 8 {
		done.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 9))
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = nc.Close() }()
			c := &client{Conn: nc, t: t}
			c.r = newReader(nc)
			for range 400 {
				key := fmt.Sprint("key", r.IntN(30))
				switch r.IntN(8) {
				case 0, 1, 2:
					value := strings.Repeat(key+" ", 1+r.IntN(5000))
					_, err = fmt.Fprintf(c, "set %s 0 0 %d noreply\r\n%s\r\n", key, len(value), value)
				case 3:
					_, err = fmt.Fprintf(c, "delete %s noreply\r\n", key)
				case 4:
					_, err = fmt.Fprintf(c, "touch %s 1000 noreply\r\n", key)
				case 5:
					if r.IntN(20) == 0 {
						_, err = fmt.Fprint(c, "flush_all noreply\r\n")
					}
				default:
					if err = c.whole(key); err != nil {
						t.Error(err)
						return
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}

// whole gets a value and checks it.
func (c *client) whole(key string) error {
	if _, err := fmt.Fprintf(c, "get %s\r\n", key); err != nil {
		return err
	}
	line, err := c.r.ReadString('\n')
	if err != nil || line == "END\r\n" {
		return err
	}
	var name string
	var flags, size int
	if _, err := fmt.Sscanf(line, "VALUE %s %d %d", &name, &flags, &size); err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	value := make([]byte, size+len("\r\nEND\r\n"))
	if _, err := io.ReadFull(c.r, value); err != nil {
		return err
	}
	if want := strings.Repeat(key+" ", size/(len(key)+1)) + "\r\nEND\r\n"; string(value) != want {
		return fmt.Errorf("%s is %.100q", key, value)
	}
	return nil
}

// TestKilled is the server that TestKill kills.
func TestKilled(t *testing.T) {
	dir := os.Getenv("SHALE_TEST_DIR")
	if dir == "" {
		t.Skip("it is the server of TestKill")
	}
	_, addr := start(t, diskOptions(t, dir))
	fmt.Println("serving " + addr)
	select {}
}

// TestKill kills a server with SIGKILL, again and again, in the middle of changes: no value that it returns
// is older than the last one that it has acknowledged, or was deleted, and what was on the disk is still
// there.
func TestKill(t *testing.T) {
	kills := 8
	if testing.Short() {
		kills = 3
	}
	dir := t.TempDir()
	const keys = 200
	acknowledged := make([]int, keys) // the number of the value; negative: it was deleted
	sent := make([]int, keys)         // the newest that may be there
	r := rand.New(rand.NewPCG(3, 1))
	next, kept := 0, 0
	for round := range kills {
		cmd, addr := child(t, "TestKilled", "SHALE_TEST_DIR="+dir)
		c := dial(t, addr)
		check := func(k int) (there bool) {
			if _, err := fmt.Fprintf(c, "get key%d\r\n", k); err != nil {
				t.Fatal(err)
			}
			line, err := c.r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "END\r\n" {
				return false
			}
			value, err := c.r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if end, err := c.r.ReadString('\n'); err != nil || end != "END\r\n" {
				t.Fatalf("%q, %v", end, err)
			}
			var n int
			if _, err := fmt.Sscanf(value, "%d", &n); err != nil || n != acknowledged[k] && n != sent[k] {
				t.Fatalf("round %d: key %d is %.20q, acknowledged %d, sent %d", round, k, value, acknowledged[k], sent[k])
			}
			return true
		}
		for k := range keys {
			if check(k) {
				kept++
			}
		}
		begun := time.Now()
		for step := 0; step < 2000 || time.Since(begun) < 2500*time.Millisecond; step++ { // so that reads are apart
			k := r.IntN(keys)
			switch r.IntN(10) {
			case 0:
				if k%4 == 0 && check(k) { // some stay long enough for reads that are apart, however fast the machine is
					continue
				}
				next++
				sent[k] = next
				value := fmt.Sprintf("%d %s", next, strings.Repeat("x", r.IntN(5000)))
				c.ask(fmt.Sprintf("set key%d 0 0 %d\r\n%s\r\n", k, len(value), value), "STORED\r\n")
				acknowledged[k] = next
			case 1:
				if r.IntN(4) > 0 {
					continue
				}
				if _, err := fmt.Fprintf(c, "delete key%d\r\n", k); err != nil {
					t.Fatal(err)
				}
				if _, err := c.r.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				acknowledged[k], sent[k] = -1, -1
			default:
				check(k)
			}
		}
		// The last changes are sent, and not waited for.
		for range 50 {
			k := r.IntN(keys)
			if acknowledged[k] != sent[k] {
				continue
			}
			next++
			sent[k] = next
			if _, err := fmt.Fprintf(c, "set key%d 0 0 10\r\n%-10d\r\n", k, next); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it says that it was killed
		_ = c.Close()
	}
	t.Logf("%d values were there after %d kills", kept, kills-1)
	if kept == 0 { // how many reads are far enough apart depends on the machine
		t.Errorf("no value was there after %d kills", kills-1)
	}
}

// TestHungDisk: a disk that does not answer a write holds up no client, not even one that changes the item
// that is being written.
func TestHungDisk(t *testing.T) {
	o := testOptions()
	o.Memory, o.MaxItem, o.DiskMemory, o.SameRead = 24<<20, 1<<20, 6<<20, time.Second
	var seconds atomic.Int64
	seconds.Store(time.Now().Unix())
	o.Now = func() time.Time { return time.Unix(seconds.Load(), 0) }
	began, end := make(chan struct{}, 1), make(chan struct{})
	hung := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWriteAt && strings.Contains(op.Path, "segment") {
			select {
			case began <- struct{}{}:
			default:
			}
			<-end
		}
		return nil
	})
	var err error
	o.Disk, err = ssd.Open(ssd.Options{
		FS: errorfs.Wrap(vfs.Default, hung), Dir: t.TempDir(), MaxBytes: ssd.MinBytes, Limits: ssd.Limits{WritesPerDay: 1000}, IndexBytes: 2 << 20, QueueBytes: 4 << 20,
		Mutable: true, Boot: boot(), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, addr := start(t, o)
	defer close(end) // before the server is closed
	a, b := dial(t, addr), dial(t, addr)
	a.ask("set k 0 0 5\r\nfirst\r\n", "STORED\r\n")
	for writes := false; !writes; {
		seconds.Add(10)
		a.ask("get k\r\n", "VALUE k 0 5\r\nfirst\r\nEND\r\n")
		select {
		case <-began:
			writes = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	for n := range 3000 { // keys of all shards
		a.ask(fmt.Sprintf("set k 0 0 1\r\n2\r\nset k%d 0 0 1\r\nx\r\n", n), "STORED\r\nSTORED\r\n")
		b.ask(fmt.Sprintf("get k\r\nget k%d\r\n", n), fmt.Sprintf("VALUE k 0 1\r\n2\r\nEND\r\nVALUE k%d 0 1\r\nx\r\nEND\r\n", n))
	}
}
