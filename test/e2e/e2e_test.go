//go:build e2e

package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	duration   = flag.Duration("duration", 60*time.Second, "how long the clients write")
	binary     = flag.String("shale", "", "the program to test; built if empty")
	slowSync   = flag.Bool("slow-sync", false, "run the server of bench/slow, so that each sync takes 5 ms longer")
	serverKind = flag.String("server", "shale", "what to test: shale, or victoria-metrics, which tests the test")
)

// settle is the longest time until written data is visible.
const settle = 30 * time.Second

// eventually repeats a comparison until it finds no difference.
func eventually(t *testing.T, what string, compare func() error) {
	t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < settle; time.Sleep(500 * time.Millisecond) {
		if err = compare(); err == nil {
			return
		}
	}
	t.Errorf("%s: %v", what, err)
}

func TestRealClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newServer(t, dir)
	if *serverKind == "shale" {
		s.args = append(s.args, "--graphite.storage-schemas", writeFile(t, filepath.Join(dir, "storage-schemas.conf"), secondSchemas))
	}
	s.start()
	from := time.Now().Add(-time.Minute)
	prom, promURL := startPrometheus(t, dir, s)
	collectd, csvDir := startCollectd(t, dir, s)
	netcat(t, s)

	for end := time.Now().Add(*duration); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		for _, p := range []*process{s.process, prom, collectd} {
			if p.ended() {
				t.Fatalf("%s ended on its own: %v", p.name, p.err)
			}
		}
	}
	to := time.Now()
	collectd.stop(t) // it sends its buffered values
	columns, err := readCSV(csvDir)
	if err != nil {
		t.Fatal(err)
	}
	nans := 0
	for _, c := range columns {
		nans += c.nans
	}
	compare := func(t *testing.T) {
		eventually(t, "Prometheus", func() error {
			series, samples, err := comparePrometheus(s.url(), promURL, from, to)
			if err == nil && series < 300 {
				err = fmt.Errorf("Prometheus has %d series only", series)
			}
			if err == nil {
				t.Logf("Prometheus: %d series with %d samples are the same on both sides", series, samples)
			}
			return err
		})
		eventually(t, "collectd", func() error {
			samples, err := compareCollectd(s.url(), columns, from, to)
			if err == nil && len(columns) < 20 {
				err = fmt.Errorf("collectd has %d columns only", len(columns))
			}
			if err == nil {
				t.Logf("collectd: %d columns with %d samples are the same on both sides, %d without a number", len(columns), samples, nans)
			}
			return err
		})
		eventually(t, "nc", func() error { return compareNetcat(s, from, to) })
		if *serverKind == "shale" {
			eventually(t, "collectd, drawn", func() error {
				samples, err := compareDrawn(s, columns, from, to)
				if err == nil {
					t.Logf("collectd: %d samples are drawn as they are", samples)
				}
				return err
			})
		}
	}
	t.Run("while the server runs", compare)
	if *serverKind != "shale" {
		return
	}
	if nans > 0 {
		t.Run("NaN is counted", func(t *testing.T) {
			if n := metric(t, s, `shale_write_discarded_samples_total{reason="nan"}`); n < float64(nans) {
				t.Errorf("counted %v, and collectd sent at least %d", n, nans)
			}
		})
	}
	t.Run("a second process is refused", func(t *testing.T) { refuseSecond(t, s) })
	t.Run("by shale query", func(t *testing.T) { askByCommand(t, s) })
	t.Run("after a restart", func(t *testing.T) {
		s.stop(t)
		if s.err != nil {
			t.Errorf("after SIGTERM the server ended with %v", s.err)
		}
		s.start()
		compare(t)
	})
	prom.stop(t) // before the server: it still writes to it
	if m := regexp.MustCompile(`(?m)^.*level=ERROR.*$`).FindAll(s.logText(t), 5); m != nil {
		t.Errorf("the server logged errors:\n%s", bytes.Join(m, []byte("\n")))
	}
}

// netcat sends lines by hand, over TCP and UDP.
func netcat(t *testing.T, s *server) {
	t.Helper()
	host, port := s.graphiteHostPort()
	for _, c := range []struct{ flags, name string }{{"-q0", "nc.tcp"}, {"-uq0", "nc.udp"}} {
		cmd := exec.Command("nc", c.flags, "-w1", host, port)
		cmd.Stdin = strings.NewReader(fmt.Sprintf("e2e.%s 42.5 %d\n", c.name, time.Now().Unix()))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("nc: %v %s", err, out)
		}
	}
	// A bad line must not harm its neighbours.
	conn, err := net.Dial("tcp", s.graphiteAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "this is no line of Graphite\n\n\x00\xff 1\ne2e.after.bad 7 %d\n", time.Now().Unix())
}

func compareNetcat(s *server, from, to time.Time) error {
	for name, want := range map[string]float64{"e2e.nc.tcp": 42.5, "e2e.nc.udp": 42.5, "e2e.after.bad": 7} {
		set, err := rawSamples(s.url(), selector(name), from, to)
		if err != nil {
			return err
		}
		list := set[labelText(map[string]string{"__name__": name})]
		if len(list) != 1 || list[0].value != want {
			return fmt.Errorf("%s: got %v, want %v once", name, set, want)
		}
	}
	return nil
}

// refuseSecond starts another process on the same folder, which must fail with the reason.
func refuseSecond(t *testing.T, s *server) {
	args := append([]string(nil), s.args...)
	for i := range args {
		if args[i] == s.httpAddr || args[i] == s.graphiteAddr || args[i] == s.pickleAddr {
			args[i] = freeAddr(t)
		}
	}
	out, err := exec.Command(s.program, args...).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("in use by another process")) {
		t.Errorf("got %v:\n%s", err, out)
	}
}

func askByCommand(t *testing.T, s *server) {
	out, err := exec.Command(s.program, "query", "--url", s.url(), "--format", "csv", "up{job='server'}").CombinedOutput()
	if err != nil || !bytes.HasSuffix(bytes.TrimSpace(out), []byte(",1")) {
		t.Errorf("got %v:\n%s", err, out)
	}
	out, err = exec.Command(s.program, "query", "--url", s.url(), "up{").CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("parse error")) {
		t.Errorf("a wrong query: got %v:\n%s", err, out)
	}
}

// metrics reads the server's own metrics.
func metrics(t *testing.T, s *server) []byte {
	t.Helper()
	text, err := api(s.url()).Get(t.Context(), "metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// metric reads one series of the server's own metrics.
func metric(t *testing.T, s *server, series string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindSubmatch(metrics(t, s))
	if m == nil {
		t.Fatalf("/metrics has no %s", series)
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
