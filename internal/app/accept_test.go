package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/logtest"
	"github.com/shaledb/shale/internal/write"
)

// needsRoom reports whether an operation fails on a full disk. Changes of what is there already do not.
func needsRoom(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpLink, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFilePreallocate:
		return true
	}
	return false
}

// TestStartOnAFullDisk: an engine on a disk that is full or read-only answers queries and refuses writes, and
// accepts writes once the disk does.
func TestStartOnAFullDisk(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		t.Run(cause.Error(), func(t *testing.T) {
			s := newSetup(t, nil)
			must(t, s.push("a", up, s.now-2, 1))
			must(t, s.Flush())
			must(t, s.push("a", up, s.now-1, 2))
			disk := s.mem.CrashClone(vfs.CrashCloneCfg{})
			must(t, s.Close())

			full := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
				if needsRoom(op) {
					return cause
				}
				return nil
			})}
			full.On()
			s.o.FS = errorfs.Wrap(disk, full)
			var err error
			s.o.Bucket, err = bucketfs.New(s.o.FS, "/bucket")
			must(t, err)
			s.Engine, err = OpenEngine(context.Background(), s.o)
			must(t, err)
			s.want(t, "a", "1 2")
			var r *write.Refused
			err = s.push("a", up, s.now, 3)
			if !errors.As(err, &r) || r.Status != 503 || r.Limit != "disk" || r.RetryAfter == 0 || !strings.Contains(r.Text, "/data") || !strings.Contains(r.Text, cause.Error()) {
				t.Errorf("a write: %v", err)
			}
			full.Off()
			s.acceptsSoon(t)
			must(t, s.push("a", up, s.now, 3))
			s.want(t, "a", "1 2 3")
			disk = disk.CrashClone(vfs.CrashCloneCfg{})
			must(t, s.Close())
			again, _, err := s.reopen(t, disk)
			must(t, err)
			again.want(t, "a", "1 2 3")
			must(t, again.Close())
		})
	}
}

// TestStartWhereRemovalsFail: a full file system such as btrfs may refuse to delete, too. Old segments of the
// journal then stay until a later flush, and the engine accepts writes.
func TestStartWhereRemovalsFail(t *testing.T) {
	s := newSetup(t, nil)
	must(t, s.push("a", up, s.now-3, 0))
	must(t, s.push("a", up, s.now-2, 1))
	disk := s.mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, s.Close())
	full := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRemove && strings.HasSuffix(op.Path, ".journal") {
			return syscall.ENOSPC
		}
		return nil
	})}
	reopen := func() {
		t.Helper()
		log := new(bytes.Buffer)
		s.o.FS, s.o.Logger = errorfs.Wrap(disk, full), slog.New(slog.NewTextHandler(log, nil))
		var err error
		s.o.Bucket, err = bucketfs.New(s.o.FS, "/bucket")
		must(t, err)
		s.Engine, err = OpenEngine(context.Background(), s.o)
		must(t, err)
		if err := s.Writable(); err != nil {
			t.Fatal("writes are refused: ", err)
		}
	}
	full.On()
	reopen()
	must(t, s.push("a", up, s.now-1, 2))
	if err := s.Flush(); !errors.Is(err, syscall.ENOSPC) { // covers the first segment, which cannot be deleted
		t.Fatal(err)
	}
	disk = disk.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if n := len(filesUnder(t, disk, "/data/journal")); n < 2 {
		t.Fatalf("%d segments: the start has none to delete", n)
	}
	reopen()
	must(t, s.push("a", up, s.now, 3))
	s.want(t, "a", "0 1 2 3")
	full.Off()
	must(t, s.Flush())
	if files := filesUnder(t, disk, "/data/journal"); len(files) != 1 {
		t.Errorf("the flush left %v", files)
	}
	must(t, s.Close())
}

// TestStopOnAFullDisk: an engine that never accepted writes can be closed.
func TestStopOnAFullDisk(t *testing.T) {
	s := newSetup(t, nil)
	must(t, s.push("a", up, s.now, 1))
	disk := s.mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, s.Close())
	s.o.FS = errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if needsRoom(op) {
			return syscall.ENOSPC
		}
		return nil
	}))
	e, err := OpenEngine(context.Background(), s.o)
	must(t, err)
	if err := e.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("rows that could not be flushed: %v", err)
	}
	r, _, err := s.reopen(t, disk)
	must(t, err)
	r.want(t, "a", "1")
	must(t, r.Close())
}

func (s *setup) acceptsSoon(t *testing.T) {
	t.Helper()
	for begin := time.Now(); s.Writable() != nil; time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatal(s.Writable())
		}
	}
}

// TestFullFileSystem runs a whole server on a small file system that another process has filled to the last
// byte. It needs root, to mount one.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96m"); err != nil {
		t.Skip("cannot mount a file system: ", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	data := filepath.Join(dir, "data")
	s := startServer(t, data)
	if status, _ := s.post(t, "/loki/api/v1/push", pushBody("first")); status != http.StatusNoContent {
		t.Fatalf("status %d", status)
	}
	copied := filepath.Join(dir, "copied") // what a kill would leave
	if out, err := exec.Command("cp", "-r", data, copied).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	must(t, s.stop())

	ballast := filepath.Join(dir, "ballast")
	fill(t, ballast)
	s = startServer(t, copied)
	if status, text := s.get(t, "/ready"); status != http.StatusOK || !strings.Contains(text, "writes are refused") || !strings.Contains(text, copied) {
		t.Errorf("ready: %d %s", status, text)
	}
	if status, text := s.get(t, "/loki/api/v1/query_range?query=%7Bapp=%22d%22%7D"); status != http.StatusOK || !strings.Contains(text, "first") {
		t.Errorf("a query: %d %s", status, text)
	}
	if status, text := s.post(t, "/loki/api/v1/push", pushBody("second")); status != http.StatusServiceUnavailable || !strings.Contains(text, copied) {
		t.Errorf("a write: %d %s", status, text)
	}
	must(t, os.Remove(ballast))
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if _, text := s.get(t, "/ready"); text == "ready\n" {
			break
		} else if time.Since(begin) > 20*time.Second {
			t.Fatalf("there is room: %s\n%s", text, s.log.String())
		}
	}
	if status, text := s.post(t, "/loki/api/v1/push", pushBody("second")); status != http.StatusNoContent {
		t.Errorf("a write: %d %s", status, text)
	}
	must(t, s.stop())
}

func pushBody(line string) string {
	return fmt.Sprintf(`{"streams":[{"stream":{"app":"d"},"values":[["%d","%s"]]}]}`, time.Now().UnixNano(), line)
}

// fill writes a file until the file system has no room.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	for _, chunk := range []int{1 << 20, 4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, chunk))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	must(t, f.Close())
}

// server is a whole server of a test.
type server struct {
	url  string
	stop func() error
	log  *logtest.Buffer
}

// startServer runs a server on a data folder until it is ready.
func startServer(t *testing.T, data string) *server { return startServerWith(t, data, nil) }

// startServerWith runs a server whose settings a function changes; nil: none.
func startServerWith(t *testing.T, data string, change func(*config.Config)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := config.Default()
	c.DataDir, c.HTTPListen, c.GraphiteListen, c.GraphitePickleListen = data, l.Addr().String(), "", ""
	must(t, l.Close())
	if change != nil {
		change(&c)
	}
	must(t, c.Resolve(config.Machine{MemoryBytes: 512 << 20, DiskBytes: 1 << 40}))
	s := &server{url: "http://" + c.HTTPListen, log: new(logtest.Buffer)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Options{Config: c, Logger: slog.New(slog.NewTextHandler(s.log, nil))}) }()
	s.stop = func() error {
		cancel()
		http.DefaultClient.CloseIdleConnections()
		return <-done
	}
	for begin := time.Now(); !strings.Contains(s.log.String(), "msg=ready"); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-done:
			t.Fatalf("the server ended: %v\n%s", err, s.log.String())
		default:
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("the server did not start:\n%s", s.log.String())
		}
	}
	return s
}

func (s *server) get(t *testing.T, path string) (int, string) {
	t.Helper()
	r, err := http.Get(s.url + path)
	return finish(t, r, err)
}

func (s *server) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	r, err := http.Post(s.url+path, "application/json", strings.NewReader(body))
	return finish(t, r, err)
}

func finish(t *testing.T, r *http.Response, err error) (int, string) {
	t.Helper()
	must(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must(t, err)
	if r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	return r.StatusCode, string(text)
}
