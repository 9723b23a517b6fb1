//go:build e2e

package badinput

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var (
	rewrite = flag.Bool("rewrite", false, "make docs/bad-input.md anew")
	given   = flag.String("shale", "", "the program to test; built if empty")
)

// attack is one line of the table.
type attack struct {
	input string // in words
	// do tries it and returns what came back.
	do func(t *testing.T, s *server) (answer, text string)
	// samples says how many were in a write of which something may be stored; they must all be accounted for.
	samples int
	// lines says the same of log lines.
	lines int
	// finding says what is known to be wrong with the effects; they are then shown and do not fail the test.
	finding string
	// anywhere lets one of several servers take it. The log of each shows one bad line a second.
	anywhere bool
	// uncounted leaves counters out of the table, where they follow the speed of the machine.
	uncounted bool
}

// complain reports a bad effect of an attack.
func (a *attack) complain(t *testing.T, format string, args ...any) {
	t.Helper()
	if a.finding != "" {
		t.Logf("known: "+a.finding+": "+format, args...)
		return
	}
	t.Errorf(format, args...)
}

// ending makes an attack of requests that a limit of queries must end, query.timeout at last. By which limit they ended is
// told by their answers, which are in the table; here they must only end.
func ending(do func(s *server) (answer, text string)) func(*testing.T, *server) (answer, text string) {
	return func(t *testing.T, s *server) (answer, text string) {
		began := time.Now()
		answer, text = do(s)
		if took := time.Since(began); took >= hung {
			t.Errorf("no end in %v, and query.timeout is 5s: %s %s", took, answer, text)
		}
		return answer, text
	}
}

// group is a part of the table.
type group struct {
	title   string
	attacks []attack
}

// maxMiB is what the process may take at its peak: the budget, 15 % and the runtime.
const maxMiB = memoryMiB*115/100 + 64

// helpers is how many servers take the attacks that any may take.
const helpers = 4

const page = "../../docs/bad-input.md"

func TestBadInput(t *testing.T) {
	table := &table{whole: map[string]string{}}
	bin := program(t)
	limits := []string{"--limits.tenants", fmt.Sprint(tenants), "--limits.connections", fmt.Sprint(connections),
		"--limits.body-bytes", fmt.Sprint(bodyMiB, "MiB"), "--limits.decoded-bytes", fmt.Sprint(decodedMiB, "MiB"),
		"--query.timeout", "5s", "--query.max-concurrent", "4", "--max-age", "24h"}
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
			table.begin(g.title)
			for i, a := range g.attacks {
				s := main
				if a.anywhere {
					s = others[i%len(others)]
				}
				t.Run(g.title+"/"+a.input, func(t *testing.T) { s.try(t, table, a) })
				if s.ended() {
					t.Fatalf("the server ended:\n%.4000s", s.logSince(max(0, s.logSize()-4000)))
				}
			}
		}
	}
	tryAll(graphiteTCP(), graphiteUDP(), pickles())
	for _, other := range others {
		other.stop(t)
	}
	// Histograms come behind the queries: one that is taken and cannot be read would fail all that select it.
	tryAll(remoteWrite(), remoteWrite2(), exemplars(), metadataTexts(), compression(), query(), endpoints(), remoteRead(),
		loki(), pushes(), openTelemetry(), histograms(), admin(), connectionAttacks())
	main.stop(t)
	for _, g := range []group{commandLine(bin), folders(bin, t.TempDir())} {
		table.begin(g.title)
		for _, a := range g.attacks {
			t.Run(g.title+"/"+a.input, func(t *testing.T) {
				answer, text := a.do(t, nil)
				t.Logf("%s | %s", answer, clean(text))
				table.row(a.input, answer, text, "")
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
		table.compare(t)
	}
}

// try does one attack and looks at what it left behind.
func (s *server) try(t *testing.T, table *table, a attack) {
	before := s.counters(t)
	s.forgetPeak(t)
	began := time.Now()
	answer, text := a.do(t, s)
	took := time.Since(began)
	moved := moved(before, s.counters(t))
	if err := s.healthy(); err != nil {
		a.complain(t, "after it the server is not well: %v", err)
	}
	peak, rss := s.status(t, "VmHWM"), s.status(t, "VmRSS")
	if peak > maxMiB {
		a.complain(t, "the process took %d MiB at its peak, and %d are allowed; now it has %d", peak, maxMiB, rss)
	}
	if a.samples > 0 {
		if n := sum(moved, "write_discarded_samples") + sum(moved, "promwrite_received_samples") + sum(moved, "otlp_received_samples"); n != a.samples {
			a.complain(t, "%d samples were sent and %d are accounted for: %v", a.samples, n, moved)
		}
	}
	if a.lines > 0 {
		if n := sum(moved, "write_discarded_lines") + sum(moved, "lokipush_received_lines") + sum(moved, "otlp_received_lines"); n != a.lines {
			a.complain(t, "%d lines were sent and %d are accounted for: %v", a.lines, n, moved)
		}
	}
	if n := sum(moved, "graphite_lines{"); n != 0 && n != sum(moved, "graphite_received_points{")+sum(moved, "write_discarded_samples{") {
		a.complain(t, "%d lines came and not all are accounted for: %v", n, moved)
	}
	t.Logf("%s | %s | %s (%v, peak %d MiB)", answer, clean(text), counterText(moved), took.Round(time.Millisecond), peak)
	counts := counterText(moved)
	if a.uncounted {
		counts = ""
	}
	table.row(a.input, answer, text, counts)
}

// sum adds up the counters whose names begin so.
func sum(moved map[string]int, prefix string) (n int) {
	for name, d := range moved {
		if strings.HasPrefix(name, prefix) {
			n += d
		}
	}
	return n
}

var interesting = regexp.MustCompile(`^shale_(write_(discarded|refused)|graphite_(bad_lines|lines|pickles|lost_pickles|received_points|dropped_points|connections_refused)|` +
	`promwrite_(requests|received_samples|received_exemplars|ignored)|lokipush_(requests|received_lines)|otlp_(requests|received_(lines|samples))|api_(prom|loki)_(requests|refused))[a-z_]*_total`)

// moved returns by how much the counters that matter grew. Names lose what all have.
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
				// The label of the transport, code or reason says enough without its name.
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

// table is the page that is kept.
type table struct {
	sb    strings.Builder
	whole map[string]string // by a line of the page, what it was cut from: that may say why it differs
}

func (m *table) begin(title string) {
	fmt.Fprintf(&m.sb, "\n## %s\n\n| input | answer | text | counters |\n|---|---|---|---|\n", title)
}

func (m *table) row(cells ...string) {
	begin := m.sb.Len()
	for _, c := range cells {
		fmt.Fprintf(&m.sb, "| %s ", clean(c))
	}
	m.whole[m.sb.String()[begin:]+"|"] = strings.Join(cells, " | ")
	m.sb.WriteString("|\n")
}

const maxCell = 240

var volatileParts = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDR"},
	{regexp.MustCompile(`/[^\s":,]*/TestBadInput[^\s":,]*/\d{3}\b`), "DIR"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( \+0000 UTC|Z|\+00:00)?`), "TIME"},
	{regexp.MustCompile(`hold \d+ of`), "hold N of"},
	{regexp.MustCompile(`i="\d+"`), `i="N"`},
	{regexp.MustCompile(`pid \d+`), "pid N"},
	{regexp.MustCompile(`\b1[78]\d{11} ms`), "TIME ms"},
	{regexp.MustCompile(`\b[0-9a-f]{16,64}\b`), "HEX"},
}

// clean makes a text fit into a cell and takes out what differs from run to run.
func clean(text string) string {
	text = strings.TrimSpace(text)
	for _, v := range volatileParts {
		text = v.find.ReplaceAllString(text, v.put)
	}
	text = strings.ToValidUTF8(text, "?")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " / ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > maxCell {
		text = string([]rune(text)[:maxCell]) + "..."
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "'").Replace(text)
}

const intro = `# Bad input, and what comes of it

What Shale says to wrong, huge, truncated and hostile input. The test in ` + "`test/badinput`" + ` makes this table (` +
	"`go test -tags e2e ./test/badinput -rewrite`" + `) and fails when an answer changes. It runs with small limits: 128 MiB of
memory, 8 tenants, 32 connections, bodies of 4 MiB and 8 MiB decoded, samples of at most 24 hours, queries of at most 5 s.
After each line the server was ready, took a good write by each protocol and answered a query. Counters stand without
` + "`shale_`" + ` and ` + "`_total`" + `; what differs from run to run is in capitals. NOW is the Unix time in seconds.
FILE and FOLDER hold a line of text and nothing of Shale's; on CLOSED nobody listens.
`

func (m *table) compare(t *testing.T) {
	got := intro + m.sb.String()
	want, err := os.ReadFile(page)
	switch {
	case err == nil && string(want) == got:
	case *rewrite:
		if err := os.WriteFile(page, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Fatal(err)
	default:
		a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
		for i := range max(len(a), len(b)) {
			x, y := "", ""
			if i < len(a) {
				x = a[i]
			}
			if i < len(b) {
				y = b[i]
			}
			if x != y {
				t.Errorf("line %d:\n-%s\n+%s\nwhole: %s", i+1, x, y, m.whole[y])
			}
		}
	}
}
