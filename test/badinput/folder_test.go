//go:build e2e

package badinput

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fixture is the data folder of a server that was killed: parts, a manifest, and a journal with more samples.
type fixture struct {
	dir     string
	samples int
	// flushed is the offset in the journal below which all records are also in parts.
	flushed int64
}

func makeFixture(t *testing.T, bin, dir string) *fixture {
	s := newServer(t, bin, dir)
	s.start(t)
	f := &fixture{dir: filepath.Join(dir, "data")}
	now := nowMs()
	push := func(n int) {
		for range n {
			f.samples++
			if status, text := s.post(nil, message(series(good("bi_folder"), sample(1, now-int64(f.samples))))); status != http.StatusNoContent {
				t.Fatalf("%d %s", status, text)
			}
		}
	}
	push(50)
	for began := time.Now(); time.Since(began) < 40*time.Second; time.Sleep(100 * time.Millisecond) {
		// The manifest is there from the start; a flush puts two parts into it.
		if text, err := os.ReadFile(filepath.Join(f.dir, "head", "MANIFEST")); err == nil && strings.Contains(string(text), "labels") {
			break
		}
	}
	f.flushed = size(t, firstFile(t, f.dir, "journal/*.journal"))
	push(50)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.done
	return f
}

func size(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// firstFile finds the first file of a pattern.
func firstFile(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no %s: %v", dir, pattern, err)
	}
	return names[0]
}

// change rewrites a file.
func change(t *testing.T, name string, how func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, how(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func flip(at int64) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at] ^= 0x55
		return b
	}
}

func cut(at int64) func([]byte) []byte { return func(b []byte) []byte { return b[:at] } }

// folders damages copies of a folder that lives in dir.
func folders(bin, dir string) group {
	g := group{file: "data-folders", title: "Data folders"}
	var made *fixture
	add := func(input string, damage func(t *testing.T, f *fixture, dir string)) {
		g.attacks = append(g.attacks, attack{input: input, do: func(t *testing.T, _ *server) (string, string) {
			if made == nil {
				t.Fatal("there is no folder to begin with")
			}
			base := t.TempDir()
			dir := filepath.Join(base, "data")
			if err := os.CopyFS(dir, os.DirFS(made.dir)); err != nil {
				t.Fatal(err)
			}
			damage(t, made, dir)
			check, _ := runCommand(t, bin, base, nil, 20*time.Second, "inspect", "folder", dir, "--check")
			outcome, text := serveFolder(t, bin, base, made)
			return hex.ReplaceAllString(outcome, "HEX") + "; inspect folder --check: " + check, stable(text)
		}})
	}
	g.attacks = append(g.attacks, attack{input: "of a server that was killed", do: func(t *testing.T, _ *server) (string, string) {
		made = makeFixture(t, bin, dir)
		return "made", ""
	}})
	add("as it is", func(*testing.T, *fixture, string) {})
	manifest := func(dir string) string { return filepath.Join(dir, "head", "MANIFEST") }
	add("MANIFEST: empty", func(t *testing.T, _ *fixture, dir string) { change(t, manifest(dir), cut(0)) })
	add("MANIFEST: a flipped bit", func(t *testing.T, _ *fixture, dir string) { change(t, manifest(dir), flip(100)) })
	add("MANIFEST: cut", func(t *testing.T, _ *fixture, dir string) { change(t, manifest(dir), cut(200)) })
	add("MANIFEST: gone", func(t *testing.T, _ *fixture, dir string) { remove(t, manifest(dir)) })
	for _, n := range []string{"1", "2"} {
		part := func(t *testing.T, dir string) string { return firstFile(t, dir, "head/*"+n+".part") }
		add("part "+n+": empty", func(t *testing.T, _ *fixture, dir string) { change(t, part(t, dir), cut(0)) })
		add("part "+n+": cut", func(t *testing.T, _ *fixture, dir string) { change(t, part(t, dir), cut(100)) })
		add("part "+n+": a flipped bit near its start", func(t *testing.T, _ *fixture, dir string) { change(t, part(t, dir), flip(10)) })
		add("part "+n+": a flipped bit in its footer", func(t *testing.T, _ *fixture, dir string) {
			change(t, part(t, dir), flip(size(t, part(t, dir))-20))
		})
		add("part "+n+": gone", func(t *testing.T, _ *fixture, dir string) { remove(t, part(t, dir)) })
	}
	journal := func(t *testing.T, dir string) string { return firstFile(t, dir, "journal/*.journal") }
	add("journal: a flipped bit in its head", func(t *testing.T, _ *fixture, dir string) { change(t, journal(t, dir), flip(5)) })
	add("journal: a flipped bit in records that parts hold", func(t *testing.T, f *fixture, dir string) { change(t, journal(t, dir), flip(f.flushed/2)) })
	add("journal: a flipped bit in the middle of records that no part holds", func(t *testing.T, f *fixture, dir string) {
		change(t, journal(t, dir), flip((f.flushed+size(t, journal(t, dir)))/2))
	})
	add("journal: a flipped bit in the last record", func(t *testing.T, _ *fixture, dir string) {
		change(t, journal(t, dir), flip(size(t, journal(t, dir))-3))
	})
	add("journal: cut in the last record", func(t *testing.T, _ *fixture, dir string) {
		change(t, journal(t, dir), cut(size(t, journal(t, dir))-3))
	})
	add("journal: 1,000 bytes of zeros after the end", func(t *testing.T, _ *fixture, dir string) {
		change(t, journal(t, dir), func(b []byte) []byte { return append(b, make([]byte, 1000)...) })
	})
	add("journal: garbage after the end", func(t *testing.T, _ *fixture, dir string) {
		change(t, journal(t, dir), func(b []byte) []byte { return append(b, []byte(strings.Repeat("garbage", 100))...) })
	})
	add("journal: gone", func(t *testing.T, _ *fixture, dir string) { remove(t, journal(t, dir)) })
	add("journal: empty", func(t *testing.T, _ *fixture, dir string) { change(t, journal(t, dir), cut(0)) })
	seed := func(dir string) string { return filepath.Join(dir, "bucket", "seed") }
	add("bucket with another seed", func(t *testing.T, _ *fixture, dir string) {
		remove(t, seed(dir))
		other := newServer(t, bin, t.TempDir())
		other.start(t)
		other.stop(t)
		b, err := os.ReadFile(filepath.Join(other.dir, "data", "bucket", "seed"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(seed(dir), b, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	add("seed: gone", func(t *testing.T, _ *fixture, dir string) { remove(t, seed(dir)) })
	add("seed: empty", func(t *testing.T, _ *fixture, dir string) { change(t, seed(dir), cut(0)) })
	add("seed: a flipped bit", func(t *testing.T, _ *fixture, dir string) { change(t, seed(dir), flip(20)) })
	add("catalogue: a record of garbage", func(t *testing.T, _ *fixture, dir string) {
		if err := os.MkdirAll(filepath.Join(dir, "bucket", "catalog"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "bucket", "catalog", "garbage.json"), []byte("{garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	add("a file called head", func(t *testing.T, _ *fixture, dir string) {
		if err := os.RemoveAll(filepath.Join(dir, "head")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "head"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	g.attacks = append(g.attacks, attack{input: "in use by another process", do: func(t *testing.T, _ *server) (string, string) {
		s := newServer(t, bin, t.TempDir())
		s.start(t)
		return runCommand(t, bin, s.dir, nil, 5*time.Second, "serve", "--data-dir", filepath.Join(s.dir, "data"), "--memory", "64MiB")
	}})
	return g
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

var (
	hex     = regexp.MustCompile(`\b[0-9a-f]{7,16}\b`)
	stamp   = regexp.MustCompile(`time=\S+ `)
	numbers = regexp.MustCompile(`\d{3,}`)
)

// stable replaces sizes and offsets, which depend on the times of samples.
func stable(text string) string {
	return numbers.ReplaceAllString(hex.ReplaceAllString(stamp.ReplaceAllString(text, ""), "HEX"), "N")
}

// serveFolder starts a server on a damaged folder and says how many of the samples it serves.
func serveFolder(t *testing.T, bin, base string, f *fixture) (outcome, text string) {
	s := newServer(t, bin, base)
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		outcome, text = runUntil(ctx, t, bin, base, nil, s.args...)
	}()
	for {
		select {
		case <-done:
			return outcome, text
		case <-time.After(20 * time.Millisecond):
		}
		if status, _ := s.get("/ready"); status != http.StatusOK {
			continue
		}
		status, body := s.get("/api/v1/query?" + url.Values{"query": {"sum(count_over_time(bi_folder[1h]))"}}.Encode())
		var a struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		_ = json.Unmarshal([]byte(body), &a)
		n := "no"
		if len(a.Data.Result) == 1 {
			n = fmt.Sprint(a.Data.Result[0].Value[1])
		}
		said := fmt.Sprintf("serves %s of %d samples", n, f.samples)
		if status != http.StatusOK {
			said = fmt.Sprintf("serves, query %d %s", status, errorText(body))
		}
		stop()
		<-done
		if count, err := strconv.Atoi(n); (err != nil || count < f.samples) && status == http.StatusOK && text == "" {
			t.Logf("%s and says nothing", said)
		}
		return said, text
	}
}
