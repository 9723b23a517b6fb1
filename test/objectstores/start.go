package objectstores

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/test/ports"
)

// The names of the stores.
const (
	Versity = "versitygw"
	Azurite = "azurite"
	FakeGCS = "fake-gcs-server"
)

// Names lists the stores.
func Names() []string { return []string{Versity, Azurite, FakeGCS} }

// Store is a running store.
type Store struct {
	// Location is that of a bucket without a prefix.
	Location location.Location
	// Addr is the address of the store.
	Addr string
	dir  string // of its files
}

// At returns the location of a part of the bucket.
func (s *Store) At(prefix string) location.Location {
	l := s.Location
	l.Prefix = prefix
	return l
}

// The name of the bucket in every store, and the account that Azurite comes with.
const (
	bucketName     = "shale-test"
	azuriteAccount = "devstoreaccount1"
	azuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Start starts a store with an empty bucket. It ends with the test.
func Start(t testing.TB, name string) *Store {
	t.Helper()
	addrs, err := ports.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &Store{Addr: addrs[0], dir: dir}
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	switch name {
	case Versity:
		for _, d := range []string{"iam", "sidecar", "objects"} {
			if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		run(t, dir, s.Addr, []string{"ROOT_ACCESS_KEY=shale", "ROOT_SECRET_KEY=of-the-test"}, program(t, "versitygw"),
			"--port", s.Addr, "--iam-dir", filepath.Join(dir, "iam"), "posix", "--sidecar", filepath.Join(dir, "sidecar"), filepath.Join(dir, "objects"))
		keys := write(t, dir, "[default]\naws_access_key_id = shale\naws_secret_access_key = of-the-test\n")
		s.Location = parse(t, "s3://%s?endpoint=http://%s&path-style=1&credentials-file=%s", bucketName, s.Addr, keys)
	case Azurite:
		run(t, dir, s.Addr, nil, program(t, "node_modules/.bin/azurite-blob"), "--blobHost", host, "--blobPort", port, "--location", dir,
			"--skipApiVersionCheck", "--silent", "--disableTelemetry")
		s.Location = parse(t, "azblob://%s?endpoint=http://%s/%s&account=%s&credentials-file=%s", bucketName, s.Addr, azuriteAccount, azuriteAccount, write(t, dir, azuriteKey+"\n"))
	case FakeGCS:
		run(t, dir, s.Addr, nil, program(t, "fake-gcs-server"), "-scheme", "http", "-host", host, "-port", port, "-backend", "memory",
			"-public-host", s.Addr, "-log-level", "error")
		s.Location = parse(t, "gs://%s?endpoint=http://%s&anonymous=1", bucketName, s.Addr)
	default:
		t.Fatalf("there is no store %q; there are %q", name, Names())
	}
	if err := makeBucket(s.Location); err != nil {
		t.Fatalf("%s: making the bucket: %v", name, err)
	}
	return s
}

func parse(t testing.TB, format string, args ...any) location.Location {
	t.Helper()
	l, err := location.Parse(fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t testing.TB, dir, text string) string {
	t.Helper()
	name := filepath.Join(dir, "credentials")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// program returns the path of a program of a store.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := find(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// find returns the path of a program below bin/test of the repository.
func find(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "bin", "test", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("bin/test/%s is missing; install it by .ci/tools", name)
}

// run starts a program and waits until it listens.
func run(t testing.TB, dir, addr string, environ []string, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), environ...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the log of %s ends with:\n%s", filepath.Base(program), text[max(0, len(text)-2000):])
		}
	})
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			c.Close()
			return
		}
		select {
		case err = <-ended:
			ended <- err
			t.Fatalf("%s ended: %v", program, err)
		default:
		}
		if time.Since(began) > 30*time.Second {
			t.Fatal(errors.Join(errors.New(program+" does not listen"), err))
		}
	}
}
