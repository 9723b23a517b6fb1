//go:build e2e

package badinput

import (
	"flag"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"
)

var (
	rewrite = flag.Bool("rewrite", false, "write the files in testdata instead of comparing with them")
	given   = flag.String("shale", "", "the program to test; built if empty")
)

// attack is one bad input.
type attack struct {
	input string // in words
	// do sends it. The outcome is a status, or what was stored; the text is the response or the log.
	do func(t *testing.T, s *server) (outcome, text string)
	// samples is the number of samples in a write that may be stored in part: all must be accounted for.
	samples int
	// lines is the same number for log lines.
	lines int
	// anywhere allows any of several servers. The log of a server shows one bad line a second.
	anywhere bool
	// uncounted leaves counters out of the golden file where they depend on the speed of the machine.
	uncounted bool
}

// ending makes an attack from requests that a query limit must end, query.timeout at the latest. The outcome
// shows which limit it was; here they must only end.
func ending(do func(s *server) (outcome, text string)) func(*testing.T, *server) (outcome, text string) {
	return func(t *testing.T, s *server) (outcome, text string) {
		began := time.Now()
		outcome, text = do(s)
		if took := time.Since(began); took >= hung {
			t.Errorf("no end in %v, and query.timeout is 5s: %s %s", took, outcome, text)
		}
		return outcome, text
	}
}

// group is the attacks on one receiver or API, with their golden file.
type group struct {
	file    string // in testdata, without .txt
	title   string
	attacks []attack
}

// maxMiB is the limit of the process at its peak: the budget, 15 % and the runtime.
const maxMiB = memoryMiB*115/100 + 64

// helpers is the number of servers for the attacks that run anywhere.
const helpers = 4

func TestBadInput(t *testing.T) {
	var goldens []*golden
	bin := program(t)
	limits := []string{"--limits.tenants", fmt.Sprint(tenants), "--limits.connections", fmt.Sprint(connections),
		"--limits.body-bytes", fmt.Sprint(bodyMiB, "MiB"), "--limits.decoded-bytes", fmt.Sprint(decodedMiB, "MiB"),
		"--query.timeout", "8s", "--query.max-concurrent", "4", "--max-age", "24h"}
	servers := make([]*server, 1+helpers)
	for i := range servers {
		servers[i] = newServer(t, bin, t.TempDir(), limits...)
		servers[i].start(t)
	}
	main, others := servers[0], servers[1:]
	main.prepare(t)
	main.prepareLines(t)
	tryAll := func(groups ...group) {
		for _, g := range groups {
			file := newGolden(g)
			goldens = append(goldens, file)
			for i, a := range g.attacks {
				s := main
				if a.anywhere {
					s = others[i%len(others)]
				}
				t.Run(g.title+"/"+a.input, func(t *testing.T) { s.try(t, file, a) })
				if s.ended() {
					t.Fatalf("the server ended:\n%.4000s", s.logSince(max(0, s.logSize()-4000)))
				}
			}
		}
	}
	tryAll(graphiteTCP(), graphiteUDP(), pickles(), graphiteHTTP())
	for _, other := range others {
		other.stop(t)
	}
	// Histograms come after the queries: one that is stored and unreadable would fail every query that selects
	// it.
	tryAll(remoteWrite(), remoteWrite2(), exemplars(), metadataTexts(), compression(), query(), endpoints(), remoteRead(),
		loki(), lokiDetected(), graphiteQueries(), pushes(), openTelemetry(), histograms(), admin(), connectionAttacks())
	main.stop(t)
	for _, g := range []group{commandLine(bin), carbonFiles(bin), movingIn(bin), folders(bin, t.TempDir())} {
		file := newGolden(g)
		goldens = append(goldens, file)
		for _, a := range g.attacks {
			t.Run(g.title+"/"+a.input, func(t *testing.T) {
				outcome, text := a.do(t, nil)
				t.Logf("%s | %s", outcome, clean(text))
				file.add(a.input, outcome, text, "")
			})
		}
	}
	for _, s := range servers {
		for _, word := range []string{"panic", "fatal error", "goroutine "} {
			if i := strings.Index(s.logSince(0), word); i >= 0 {
				t.Errorf("the log has %s:\n%.1000s", word, s.logSince(i))
			}
		}
	}
	if !t.Failed() || *rewrite {
		compare(t, goldens)
	}
}

// try makes one attack and checks the server after it.
func (s *server) try(t *testing.T, file *golden, a attack) {
	before := s.counters(t)
	s.forgetPeak(t)
	began := time.Now()
	outcome, text := a.do(t, s)
	took := time.Since(began)
	moved := moved(before, s.counters(t))
	if err := s.healthy(); err != nil {
		t.Errorf("the server is unhealthy after it: %v", err)
	}
	peak, rss := s.status(t, "VmHWM"), s.status(t, "VmRSS")
	if peak > maxMiB {
		t.Errorf("the process had %d MiB at its peak, expected at most %d; now it has %d", peak, maxMiB, rss)
	}
	if a.samples > 0 {
		if n := sum(moved, "write_discarded_samples") + sum(moved, "promwrite_received_samples") + sum(moved, "otlp_received_samples") +
			sum(moved, "graphite_http_points"); n != a.samples {
			t.Errorf("%d samples were sent and %d are accounted for: %v", a.samples, n, moved)
		}
	}
	if a.lines > 0 {
		if n := sum(moved, "write_discarded_lines") + sum(moved, "lokipush_received_lines") + sum(moved, "otlp_received_lines"); n != a.lines {
			t.Errorf("%d lines were sent and %d are accounted for: %v", a.lines, n, moved)
		}
	}
	if n := sum(moved, "graphite_lines{"); n != 0 && n != sum(moved, "graphite_received_points{")+sum(moved, "write_discarded_samples{") {
		t.Errorf("%d lines came and not all are accounted for: %v", n, moved)
	}
	t.Logf("%s | %s | %s (%v, peak %d MiB)", outcome, clean(text), counterText(moved), took.Round(time.Millisecond), peak)
	counts := counterText(moved)
	if a.uncounted {
		counts = ""
	}
	file.add(a.input, outcome, text, counts)
}

// sum adds up the counters whose names begin with prefix.
func sum(moved map[string]int, prefix string) (n int) {
	for name, d := range moved {
		if strings.HasPrefix(name, prefix) {
			n += d
		}
	}
	return n
}

var interesting = regexp.MustCompile(`^shale_(write_(discarded|refused)|graphite_(bad_lines|lines|pickles|lost_pickles|received_points|dropped_points|connections_refused|http_points)|` +
	`promwrite_(requests|received_samples|received_exemplars|ignored)|lokipush_(requests|received_lines)|otlp_(requests|received_(lines|samples))|api_(prom|loki)_(requests|refused))[a-z_]*_total`)

// moved returns by how much the interesting counters grew. Names lose their common prefix and suffix.
func moved(before, after map[string]float64) map[string]int {
	m := map[string]int{}
	for name, v := range after {
		if d := int(v - before[name]); d != 0 && interesting.MatchString(name) && !strings.Contains(name, "_seconds") {
			base, labels, _ := strings.Cut(strings.TrimPrefix(name, "shale_"), "{")
			base = strings.TrimSuffix(base, "_total")
			values := regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(labels, -1)
			var list []string
			for _, v := range values {
				list = append(list, v[1])
			}
			if len(list) > 0 {
				// The value of the transport, code or reason is clear without the name of the label.
				base += "{" + strings.Join(list, ",") + "}"
			}
			m[base] += d
		}
	}
	return m
}

func counterText(moved map[string]int) string {
	var list []string
	for name, d := range moved {
		list = append(list, fmt.Sprintf("%s +%d", name, d))
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}
