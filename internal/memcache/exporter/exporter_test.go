package exporter

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

var record = flag.Bool("record", false, "write what the real memcached_exporter has")

// gather returns the metrics of a server, by name and labels.
func gather(t *testing.T, addr string) (values map[string]string, families []*dto.MetricFamily) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&Exporter{Addr: addr, Timeout: 5 * time.Second, Failed: func(err error) { t.Log(err) }})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return flat(families), families
}

// flat writes each metric with its type and value.
func flat(families []*dto.MetricFamily) map[string]string {
	values := map[string]string{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += fmt.Sprintf(" %s=%s", l.GetName(), l.GetValue())
			}
			values[name] = fmt.Sprintf("%v %g", f.GetType(), m.GetGauge().GetValue()+m.GetCounter().GetValue()+m.GetUntyped().GetValue())
		}
	}
	return values
}

// load does some of everything.
func load(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var b bytes.Buffer
	for i := range 500 {
		fmt.Fprintf(&b, "set key%d 0 0 1800 noreply\r\n%s\r\n", i, strings.Repeat("v", 1800))
	}
	b.WriteString("get key1\r\nget none\r\nincr none 1\r\ndelete key2\r\ntouch key3 100\r\nset n 0 0 1\r\n1\r\nincr n 1\r\ncas key1 0 0 1 1\r\nx\r\nquit\r\n")
	if _, err := c.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Fatal(err)
	}
}

// kinds returns names with the names of their labels, and types.
func kinds(families []*dto.MetricFamily) (all []string) {
	for _, f := range families {
		for _, m := range f.Metric {
			line := f.GetName()
			for _, l := range m.Label {
				line += " " + l.GetName()
			}
			all = append(all, line+": "+f.GetType().String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestGolden compares names, labels and types with those that memcached_exporter 0.16.0 had of such a server.
func TestGolden(t *testing.T) {
	s := memcachetest.Start(t, memcachetest.Extstore(t.TempDir(), 64)...)
	load(t, s.Addr)
	_, families := gather(t, s.Addr)
	text, err := os.ReadFile("testdata/memcached_exporter-0.16.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	ours := kinds(families)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !slices.Contains(ours, line) {
			t.Errorf("%s is missing", line)
		}
	}
}

// TestNames compares names, labels, types and values with those of the real memcached_exporter, where it is
// installed: Debian 12 does not have it.
func TestNames(t *testing.T) {
	const program = "memcached_exporter"
	if _, err := exec.LookPath(program); err != nil {
		t.Skip(program + " is not installed")
	}
	s := memcachetest.Start(t, memcachetest.Extstore(t.TempDir(), 64)...)
	load(t, s.Addr)
	listen := "127.0.0.1:" + memcachetest.FreePort(t)
	cmd := exec.Command(program, "--memcached.address", s.Addr, "--web.listen-address", listen)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var theirs map[string]string
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://" + listen + "/metrics"); err == nil {
			parser := expfmt.NewTextParser(model.LegacyValidation)
			byName, err := parser.TextToMetricFamilies(resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			var families []*dto.MetricFamily
			for name, f := range byName {
				if strings.HasPrefix(name, "memcached_") && !strings.HasPrefix(name, "memcached_exporter_") {
					families = append(families, f)
				}
			}
			theirs = flat(families)
			if *record {
				if err := os.WriteFile("testdata/memcached_exporter-0.16.0.txt", []byte(strings.Join(kinds(families), "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("memcached_exporter did not begin within 10 s")
		}
	}
	ours, _ := gather(t, s.Addr)
	// What moves between two questions.
	moving := []string{"uptime", "time_seconds", "cpu_seconds", "read_bytes", "written_bytes", "connections", "crawler", "moves", "age", "items_hot", "hot_items", "cold_items", "warm_items", "lru"}
	missing := 0
	for name, want := range theirs {
		got, ok := ours[name]
		if !ok {
			missing++
			t.Errorf("%s is missing", name)
			continue
		}
		still := !slices.ContainsFunc(moving, func(m string) bool { return strings.Contains(name, m) })
		gotKind, _, _ := strings.Cut(got, " ")
		wantKind, _, _ := strings.Cut(want, " ")
		if gotKind != wantKind || still && got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	t.Logf("%d metrics, of which memcached_exporter has %d; %d are missing", len(ours), len(theirs), missing)
}

func TestMetrics(t *testing.T) {
	s := memcachetest.Start(t, memcachetest.Extstore(t.TempDir(), 64)...)
	load(t, s.Addr)
	got, families := gather(t, s.Addr)
	for _, name := range []string{"memcached_extstore_misses_total", "memcached_waste_ratio", "memcached_probe_seconds", "memcached_waste_bytes cause=chunks", "memcached_items_evicted_unfetched_total", "memcached_extstore_bad_checksums_total"} {
		if got[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		ours := slices.ContainsFunc(more, func(s stat) bool { return "memcached_"+s.name == p.Metric })
		if ours {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	s.Kill()
	if got, _ := gather(t, s.Addr); len(got) != 1 || got["memcached_up"] != "GAUGE 0" {
		t.Errorf("a server that is down: %v", got)
	}
}
