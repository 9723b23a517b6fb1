package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSum(t *testing.T) {
	text := []byte("# HELP a x\na{t=\"x\"} 3\na{t=\"y\"} 1e3\nab 7\nb 2 1700000000\n")
	for _, c := range []struct {
		name, label string
		want        float64
		found       bool
	}{{"a", "", 1003, true}, {"a", `t="x"`, 3, true}, {"b", "", 2, true}, {"ab", "", 7, true}, {"c", "", 0, false}} {
		if got, found := sum(text, c.name, c.label); got != c.want || found != c.found {
			t.Errorf("%s%s: %v, %v", c.name, c.label, got, found)
		}
	}
}

func TestShorten(t *testing.T) {
	for in, want := range map[string]string{
		"prometheus, version 3.15.0 (branch: x)": "prometheus, 3.15.0",
		"shale v0.1 (abc) go1.26 linux/amd64":    "shale v0.1",
		"victoria-metrics-v1.150.0":              "victoria-metrics-v1.150.0",
	} {
		if got := shorten(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// Errors tell what to do: for a path without an executable, a program that ends at once, and an unknown
// program.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := New(t.Context(), "shale", Shale, filepath.Join(dir, "none"), nil); err == nil || !strings.Contains(err.Error(), "give the path") {
		t.Error(err)
	}
	if _, err := New(t.Context(), "shale", Shale, dir, nil); err == nil || !strings.Contains(err.Error(), "is not an executable file") {
		t.Error(err)
	}
	script := filepath.Join(dir, "server")
	text := "#!/bin/sh\n[ \"$1\" = --version ] && echo odd thing 1.2 3 && exit\necho cannot listen: port taken >&2\nexit 3\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	sys, err := New(t.Context(), "odd", VictoriaMetrics, script, []string{"-x"})
	if err != nil || sys.Version != "odd thing 1.2" {
		t.Fatal(sys, err)
	}
	if _, err := Start(t.Context(), sys, Options{Dir: filepath.Join(dir, "data")}); err == nil || !strings.Contains(err.Error(), "port taken") {
		t.Error(err)
	}
}

func TestLokiConfig(t *testing.T) {
	text, err := lokiConfig("/d", "127.0.0.1:1", "127.0.0.1:2")
	if err != nil || !strings.Contains(text, "http_listen_port: 1\n") || !strings.Contains(text, "grpc_listen_port: 2\n") || !strings.Contains(text, "path_prefix: /d/data\n") {
		t.Error(text, err)
	}
	if _, err := lokiConfig("/d", "soup", ""); err == nil {
		t.Error("an address without a port is taken")
	}
}

func TestDiskBytes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := DiskBytes(dir); err != nil || n > 100_000 {
		t.Error(n, err)
	}
}

func TestSpeaks(t *testing.T) {
	vm, prom := System{Kind: VictoriaMetrics}, System{Kind: Prometheus}
	if vm.Speaks("v2") || prom.Speaks("graphite") || !vm.Speaks("graphite") || !prom.Speaks("v2") || !vm.Speaks("v1") {
		t.Error("protocols are mixed up")
	}
	for _, kind := range []Kind{Loki, VictoriaLogs, Shale, VictoriaMetrics, Prometheus} {
		s := System{Kind: kind}
		if logs := kind == Loki || kind == VictoriaLogs; s.Speaks("logs") != (logs || kind == Shale) || s.Speaks("v1") == logs || logs && s.Speaks("graphite") {
			t.Error("protocols of logs are mixed up:", kind)
		}
	}
	args := strings.Join(vm.arguments(Options{Dir: "/d"}, "127.0.0.1:1", "127.0.0.1:2"), " ")
	if !strings.Contains(args, "-httpListenAddr 127.0.0.1:1") {
		t.Error(args)
	}
}
