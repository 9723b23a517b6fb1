package pipeline

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/graphite/relay"
	"github.com/shaledb/shale/internal/write/graphite/rules"
)

func TestMain(m *testing.M) {
	// The clock of the backtracking engine stops by itself, a while after the last match.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// files writes rule files, and returns settings that name them.
func files(t testing.TB, blacklist, whitelist, rewrites string) rules.Settings {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) string {
		if text == "" {
			return ""
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return rules.Settings{
		Blacklist: file("blacklist.conf", blacklist), Whitelist: file("whitelist.conf", whitelist),
		Rewrites: file("rewrite-rules.conf", rewrites),
	}
}

func open(t testing.TB, o Options) *Pipeline {
	t.Helper()
	if o.TableBytes == 0 {
		o.TableBytes = 1 << 20
	}
	o.Registerer, o.Logger = prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestPass(t *testing.T) {
	p := open(t, Options{Rules: files(t, `^bad\.`, `\.(cpu|mem)$`, "[pre]\n^x- =\n[post]\n\\.mem$ = .memory\n")})
	for range 2 { // unknown paths, then known ones
		for _, c := range []struct{ path, stored, dropped string }{
			{"a.cpu", "a.cpu", ""},
			{"bad.cpu", "", write.ReasonBlacklisted},
			{"a.disk", "", write.ReasonNotWhitelisted},
			{"x-a.mem", "a.memory", ""},
			{"a.mem;dc=eu", "", write.ReasonNotWhitelisted},
		} {
			if stored, dropped := p.Pass("t", []byte(c.path), 0, 0); string(stored) != c.stored || dropped != c.dropped {
				t.Errorf("%s: got %q %q, want %q %q", c.path, stored, dropped, c.stored, c.dropped)
			}
		}
	}
}

func TestPassDropsWhereARuleFails(t *testing.T) {
	p := open(t, Options{Rules: files(t, `^(?=(a+)+$)(a+)+\1$`, "", "")})
	if _, dropped := p.Pass("t", []byte(strings.Repeat("a", 60)+"!"), 0, 0); dropped != write.ReasonRuleFailed {
		t.Errorf("a hostile expression: dropped for %q", dropped)
	}
}

// TestRelays: a point goes to the queues of its destinations under the path that it is stored by.
func TestRelays(t *testing.T) {
	settings := files(t, "", "", "[post]\n^x- =\n")
	dir := t.TempDir()
	settings.Relay = filepath.Join(dir, "carbon.conf")
	for name, text := range map[string]string{
		"carbon.conf":      "[relay]\nDESTINATIONS = 127.0.0.1:1, 127.0.0.1:1:b\n",
		"relay-rules.conf": "[b]\npattern = ^both\ncontinue = true\ndestinations = 127.0.0.1:1:b\n[d]\ndefault = true\ndestinations = 127.0.0.1:1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, only := range []bool{false, true} {
		reg := prometheus.NewRegistry()
		queues, err := relay.Open(relay.Options{FS: vfs.NewMem(), Dir: "/relay", QueueBytes: 4 << 20, Registerer: reg, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = queues.Close() })
		p := open(t, Options{Rules: settings, Relay: queues, RelayOnly: only})
		for range 2 { // unknown paths, then known ones
			for path, want := range map[string]string{"x-both": "both", "both": "both", "other": "other"} {
				stored, dropped := p.Pass("t", []byte(path), 7e9, 1)
				if only && dropped != write.ReasonRelayed || !only && (dropped != "" || string(stored) != want) {
					t.Errorf("only %v, %s: got %q %q", only, path, stored, dropped)
				}
			}
		}
		if store, err := p.Relay([]string{"both"}, []int64{1}, []float64{2}); err != nil || store == only {
			t.Errorf("only %v: points of the process are stored: %v, error %v", only, store, err)
		}
		got := map[string]float64{}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "shale_graphite_relay_queued_points" {
				for _, m := range f.GetMetric() {
					got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
				}
			}
		}
		if got["127.0.0.1:1"] != 7 || got["127.0.0.1:1:b"] != 5 {
			t.Errorf("only %v: %v points wait", only, got)
		}
	}
}

// TestChangedRulesAreInForce: what was known of a path is forgotten when a file changes.
func TestChangedRulesAreInForce(t *testing.T) {
	settings := files(t, `^a`, "", "")
	p := open(t, Options{Rules: settings})
	if _, dropped := p.Pass("t", []byte("a"), 0, 0); dropped == "" {
		t.Fatal("the blacklist is not in force")
	}
	if err := os.WriteFile(settings.Blacklist, []byte("^b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.files.Load(); err != nil { // as the watcher does
		t.Fatal(err)
	}
	if _, dropped := p.Pass("t", []byte("a"), 0, 0); dropped != "" {
		t.Errorf("the old blacklist is in force: %s", dropped)
	}
	if _, dropped := p.Pass("t", []byte("b"), 0, 0); dropped == "" {
		t.Error("the new blacklist is not in force")
	}
}

func TestTableIsBounded(t *testing.T) {
	p := open(t, Options{Rules: files(t, "", "", "[pre]\n^a = b\n"), TableBytes: 64 << 10})
	for i := range 10_000 {
		path := fmt.Sprintf("a.%d", i)
		if stored, _ := p.Pass("t", []byte(path), 0, 0); string(stored) != "b"+path[1:] {
			t.Fatalf("%s became %s", path, stored)
		}
	}
	if n, bytes := p.now.Load().known.size(); n == 0 || bytes > 64<<10 {
		t.Errorf("%d paths in %d bytes, want at most %d", n, bytes, 64<<10)
	}
}

func TestPassAllocatesNothing(t *testing.T) {
	p := open(t, Options{Rules: files(t, "^bad", "", "[pre]\n^x-=\n")})
	same, other, bad := []byte("servers.web1.cpu.idle"), []byte("x-servers.web1"), []byte("bad.x")
	pass := func() {
		p.Pass("t", same, 0, 0)
		p.Pass("t", other, 0, 0)
		p.Pass("t", bad, 0, 0)
	}
	pass()
	alloctest.AtMost(t, 0, 10, pass)
}

func BenchmarkPass(b *testing.B) {
	p := open(b, Options{Rules: files(b, "^bad\n^worse\nx$\n", "", "[pre]\n^x-=\n")})
	path := []byte("servers.web1.cpu.idle")
	b.ReportAllocs()
	for b.Loop() {
		p.Pass("t", path, 0, 0)
	}
}
